package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/labstack/echo/v4"
	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/idempotency"
)

// Behind other routers: the route is found, the handler gets its parameters, and a
// repeat gets the answer.
func TestRouters(t *testing.T) {
	s := newShop(t)
	ledger, err := semel.New(context.Background(), s.store, &semel.Options{
		Kinds: idempotency.Kinds(idempotency.Route{Pattern: "POST /orders/{id}"}, idempotency.Route{Pattern: "POST /refunds/{id}"})})
	must(t, err)
	t.Cleanup(func() { ledger.Close() })

	for name, build := range map[string]func(run func(id string) string) http.Handler{
		// chi gives a pattern to http.Request, so the middleware is used as it is.
		"chi": func(run func(string) string) http.Handler {
			r := chi.NewRouter()
			safe := r.With(func(next http.Handler) http.Handler {
				return idempotency.NewHandler(next, ledger, &idempotency.Options{Account: accountOf("chi")})
			})
			handle := func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, run(chi.URLParam(r, "id"))) }
			safe.Post("/orders/{id}", handle)
			safe.Post("/refunds/{id}", handle)
			return r
		},
		// gin: the context travels with the request.
		"gin": func(run func(string) string) http.Handler {
			gin.SetMode(gin.ReleaseMode)
			r := gin.New()
			type ginKey struct{}
			h := idempotency.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				c := r.Context().Value(ginKey{}).(*gin.Context)
				before, writer := c.Request, c.Writer
				c.Request, c.Writer = r, &ginWriter{ResponseWriter: writer, to: w}
				c.Next()
				c.Request, c.Writer = before, writer
			}), ledger, &idempotency.Options{Account: accountOf("gin"), Route: func(r *http.Request) string {
				return strings.ReplaceAll(r.Context().Value(ginKey{}).(*gin.Context).FullPath(), ":id", "{id}")
			}})
			safe := func(c *gin.Context) {
				h.ServeHTTP(c.Writer, c.Request.WithContext(context.WithValue(c.Request.Context(), ginKey{}, c)))
				c.Abort()
			}
			handle := func(c *gin.Context) { c.String(200, run(c.Param("id"))) }
			r.POST("/orders/:id", safe, handle)
			r.POST("/refunds/:id", safe, handle)
			return r
		},
		// echo: likewise.
		"echo": func(run func(string) string) http.Handler {
			e := echo.New()
			type echoKey struct{}
			type call struct {
				c    echo.Context
				next echo.HandlerFunc
			}
			h := idempotency.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				x := r.Context().Value(echoKey{}).(*call)
				request, response := x.c.Request(), x.c.Response()
				x.c.SetRequest(r)
				x.c.SetResponse(echo.NewResponse(w, e))
				if err := x.next(x.c); err != nil {
					x.c.Error(err)
				}
				x.c.SetRequest(request)
				x.c.SetResponse(response)
			}), ledger, &idempotency.Options{Account: accountOf("echo"), Route: func(r *http.Request) string {
				return strings.ReplaceAll(r.Context().Value(echoKey{}).(*call).c.Path(), ":id", "{id}")
			}})
			safe := func(next echo.HandlerFunc) echo.HandlerFunc {
				return func(c echo.Context) error {
					h.ServeHTTP(c.Response(), c.Request().WithContext(context.WithValue(c.Request().Context(), echoKey{}, &call{c, next})))
					return nil
				}
			}
			handle := func(c echo.Context) error { return c.String(200, run(c.Param("id"))) }
			e.POST("/orders/:id", handle, safe)
			e.POST("/refunds/:id", handle, safe)
			return e
		},
	} {
		t.Run(name, func(t *testing.T) {
			runs := 0
			server := httptest.NewServer(build(func(id string) string { runs++; return fmt.Sprintf("%s, run %d", id, runs) }))
			defer server.Close()
			send := func(path, key string) (status int, body string, replayed bool) {
				r, _ := http.NewRequest("POST", server.URL+path, strings.NewReader(`{}`))
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Idempotency-Key", key)
				resp, err := http.DefaultClient.Do(r)
				must(t, err)
				defer resp.Body.Close()
				text, err := io.ReadAll(resp.Body)
				must(t, err)
				return resp.StatusCode, string(text), resp.Header.Get("Idempotency-Replayed") != ""
			}
			for _, want := range []struct {
				path, body string
				status     int
				replayed   bool
			}{{"/orders/7", "7, run 1", 200, false}, {"/orders/7", "7, run 1", 200, true}, {"/refunds/7", "7, run 2", 200, false}, {"/orders/8", "", 422, false}} {
				status, body, replayed := send(want.path, "k")
				if status != want.status || replayed != want.replayed || status == 200 && body != want.body {
					t.Errorf("%s: %d %s %v, want %+v", want.path, status, body, replayed, want)
				}
			}
		})
	}
}

func accountOf(name string) func(*http.Request) (string, error) {
	return func(*http.Request) (string, error) { return name, nil }
}

// ginWriter sends what gin writes to the middleware's writer.
type ginWriter struct {
	gin.ResponseWriter
	to http.ResponseWriter
}

func (w *ginWriter) Header() http.Header               { return w.to.Header() }
func (w *ginWriter) WriteHeader(status int)            { w.to.WriteHeader(status) }
func (w *ginWriter) WriteHeaderNow()                   {}
func (w *ginWriter) Write(p []byte) (int, error)       { return w.to.Write(p) }
func (w *ginWriter) WriteString(s string) (int, error) { return w.to.Write([]byte(s)) }
func (w *ginWriter) Flush()                            { http.NewResponseController(w.to).Flush() }

package idempotency_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/idempotency"
)

// compressing is what a compressing middleware does.
func compressing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Accept-Encoding")
		if accepted := r.Header.Get("Accept-Encoding"); !strings.Contains(accepted, "gzip") || strings.Contains(accepted, "q=0") {
			next.ServeHTTP(w, r)
			return
		}
		z := &zipped{ResponseWriter: w, zip: gzip.NewWriter(w)}
		next.ServeHTTP(z, r)
		z.zip.Close()
	})
}

type zipped struct {
	http.ResponseWriter
	zip   *gzip.Writer
	wrote bool
}

func (z *zipped) WriteHeader(status int) {
	if !z.wrote {
		z.wrote = true
		z.Header().Set("Content-Encoding", "gzip")
		z.Header().Del("Content-Length")
	}
	z.ResponseWriter.WriteHeader(status)
}

func (z *zipped) Write(p []byte) (int, error) {
	if !z.wrote {
		z.WriteHeader(200)
	}
	return z.zip.Write(p)
}

func gunzip(t *testing.T, s string) string {
	t.Helper()
	zr, err := gzip.NewReader(strings.NewReader(s))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(zr)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Compression, inside and outside of the middleware, in both orders: each repeat
// can be read by whoever sent it.
func TestReplayCompressed(t *testing.T) {
	text := strings.Repeat("all the noodles. ", 100)
	for _, where := range []string{"inside", "outside"} {
		t.Run(where, func(t *testing.T) {
			onBoth(t, func(t *testing.T, w *world) {
				n := w.node(nil)
				var inner http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if a := r.Header.Get("Accept-Encoding"); a != "" && a != "gzip" {
						t.Errorf("the handler was offered %q", a)
					}
					w.Header().Set("Etag", `"v1"`)
					w.Header().Set("Content-Type", "text/plain")
					io.WriteString(w, text)
				})
				if where == "inside" {
					inner = compressing(inner)
				}
				var outer http.Handler = idempotency.NewHandler(inner, n.ledger, &n.opts)
				if where == "outside" {
					outer = compressing(outer)
				}
				n.mux.Handle("POST /orders", outer)
				for _, c := range []struct{ first, again string }{{"br, gzip", ""}, {"", "gzip"}, {"gzip;q=0", "gzip"}, {"gzip", "gzip;q=0, identity"}, {"gzip", "gzip"}, {"", ""}} {
					key := newKey()
					for i, accept := range []string{c.first, c.again} {
						lines := []string{}
						if accept != "" {
							lines = append(lines, "Accept-Encoding: "+accept)
						}
						a := n.send("POST", "/orders", key, `{}`, lines...)
						body, zipped := a.body, a.header.Get("Content-Encoding") == "gzip"
						if zipped {
							body = gunzip(t, a.body)
						}
						if body != text || a.replayed() != (i == 1) || a.header.Get("Content-Type") != "text/plain" || a.header.Get("Vary") == "" {
							t.Errorf("%q then %q, answer %d: %.300s", c.first, c.again, i, a)
						}
						if zipped && (accept == "" || strings.Contains(accept, "q=0")) {
							t.Errorf("%q then %q, answer %d: gzip for somebody who can't read it", c.first, c.again, i)
						}
					}
				}
			})
		})
	}
}

// Header lines come back as they were, those that are allowed; the others never.
func TestReplayedHeaders(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		n := w.node(nil)
		n.handle("POST /orders", func(w http.ResponseWriter, r *http.Request) {
			h := w.Header()
			h.Add("Set-Cookie", "a=1; Expires=Thu, 01 Jan 2026 00:00:00 GMT")
			h.Add("Set-Cookie", "b=2; Expires=Fri, 02 Jan 2026 00:00:00 GMT")
			h.Add("Link", `</a>; rel="next", </b>; rel="last"`)
			h.Add("Link", `</c>; rel="first"`)
			h.Set("Expires", "Thu, 01 Jan 2026 00:00:00 GMT")
			h.Set("Location", "/orders/1")
			h.Set("Content-Type", "application/vnd.order+json")
			h.Set("WWW-Authenticate", "Bearer")
			h.Set("Retry-After", "7")
			h.Set("X-RateLimit-Remaining", "3")
			h.Set("RateLimit", "limit=1")
			h.Set("X-Request-Id", "42")
			w.WriteHeader(202)
			h.Set("Etag", "too late")
			io.WriteString(w, "bytes \xff\x00 that are no text")
		})
		key := newKey()
		first, again := n.send("POST", "/orders", key, `{}`), n.send("POST", "/orders", key, `{}`)
		if first.status != 202 || again.status != 202 || first.body != again.body || first.body != "bytes \xff\x00 that are no text" {
			t.Errorf("first %s\nagain %s", first, again)
		}
		if len(first.header["Set-Cookie"]) != 2 || first.header.Get("Retry-After") != "7" || first.header.Get("X-Request-Id") != "42" || first.header.Get("Etag") != "" {
			t.Errorf("the first answer lost or gained something: %v", first.header)
		}
		for _, name := range []string{"Link", "Expires", "Location", "Content-Type", "Content-Length"} {
			if !slices.Equal(first.header[name], again.header[name]) {
				t.Errorf("%s was %q and is %q", name, first.header[name], again.header[name])
			}
		}
		for _, name := range []string{"Set-Cookie", "Www-Authenticate", "Retry-After", "X-Ratelimit-Remaining", "Ratelimit", "X-Request-Id", "Etag"} {
			if lines, there := again.header[name]; there {
				t.Errorf("%s was replayed: %q", name, lines)
			}
		}
		if again.header.Get("Date") == "" {
			t.Error("no Date")
		}
	})
}

// Answers of every shape: the repeat is the first answer again.
func TestReplayedShapes(t *testing.T) {
	c := idempotency.DefaultContract()
	c.Use.Methods = append(c.Use.Methods, "HEAD")
	cases := map[string]struct {
		method string
		handle http.HandlerFunc
		check  func(a answer) bool
	}{
		"204": {"POST", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(204)
			if _, err := w.Write([]byte("x")); err != http.ErrBodyNotAllowed {
				t.Errorf("a body with 204: %v", err)
			}
		}, func(a answer) bool { return a.status == 204 && a.body == "" && a.header.Get("Content-Length") == "" }},
		"304": {"POST", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Etag", `"x"`)
			w.WriteHeader(304)
		}, func(a answer) bool { return a.status == 304 && a.body == "" && a.header.Get("Etag") == `"x"` }},
		"303": {"POST", func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Location", "/x"); w.WriteHeader(303) },
			func(a answer) bool { return a.status == 303 && a.header.Get("Location") == "/x" }},
		"422": {"POST", func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", 422) },
			func(a answer) bool { return a.status == 422 && a.body == "no\n" }},
		"HEAD": {"HEAD", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "12345")
			io.WriteString(w, "not for HEAD")
		}, func(a answer) bool {
			return a.status == 200 && a.body == "" && a.header.Get("Content-Length") == "12345"
		}},
		"nothing at all": {"POST", func(w http.ResponseWriter, r *http.Request) {},
			func(a answer) bool { return a.status == 200 && a.body == "" && a.header.Get("Content-Length") == "0" }},
		"a guessed type": {"POST", func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "<html>")
			io.WriteString(w, "\x00\x01")
		}, func(a answer) bool { return a.header.Get("Content-Type") == "text/html; charset=utf-8" }},
		"no type": {"POST", func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Content-Type"] = nil
			io.WriteString(w, "<html>")
		}, func(a answer) bool { _, there := a.header["Content-Type"]; return !there && a.body == "<html>" }},
		"announced trailers": {"POST", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Trailer", "Checksum")
			io.WriteString(w, "body")
			w.Header().Set("Checksum", "abc")
		}, func(a answer) bool { return a.body == "body" && a.header.Get("Trailer-Checksum") == "abc" }},
		"trailers by prefix": {"POST", func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "body")
			w.Header().Set(http.TrailerPrefix+"Checksum", "abc")
		}, func(a answer) bool { return a.body == "body" && a.header.Get("Trailer-Checksum") == "abc" }},
		"trailers of a stream": {"POST", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Trailer", "Checksum")
			io.WriteString(w, "bo")
			http.NewResponseController(w).Flush()
			io.WriteString(w, "dy")
			w.Header().Set("Checksum", "abc")
		}, func(a answer) bool { return a.body == "body" && a.header.Get("Trailer-Checksum") == "abc" }},
		"io.Copy": {"POST", func(w http.ResponseWriter, r *http.Request) {
			if _, ok := w.(io.ReaderFrom); !ok {
				t.Error("no ReaderFrom")
			}
			n, err := io.Copy(w, strings.NewReader(strings.Repeat("x", 100_000)))
			if n != 100_000 || err != nil {
				t.Error(n, err)
			}
		}, func(a answer) bool { return len(a.body) == 100_000 }},
		"a length that is not kept": {"POST", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "short")
		}, func(a answer) bool { return a.err == nil && a.body == "short" }},
		"superfluous WriteHeader": {"POST", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(201)
			w.WriteHeader(500)
		}, func(a answer) bool { return a.status == 201 }},
		"deadlines": {"POST", func(w http.ResponseWriter, r *http.Request) {
			if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Error(err)
			}
		}, func(a answer) bool { return a.status == 200 }},
	}
	for _, mode := range []string{"guarded", "transactional"} {
		t.Run(mode, func(t *testing.T) {
			onBoth(t, func(t *testing.T, w *world) {
				n := w.node(func(o *idempotency.Options, d *database) {
					o.Contract = &c
					if mode == "transactional" {
						o.Begin = d.begin
					}
				})
				var handle http.HandlerFunc
				run := func(w http.ResponseWriter, r *http.Request) { handle(w, r) }
				n.handle("POST /orders", run)
				n.handle("HEAD /orders", run)
				for name, c := range cases {
					handle = c.handle
					key := newKey()
					for i := range 2 {
						a := n.send(c.method, "/orders", key, "")
						if !c.check(a) || a.replayed() != (i == 1) {
							t.Errorf("%s, answer %d: %.300s", name, i, a)
						}
					}
				}
			})
		})
	}
}

// The body of a file beyond what is kept goes out by the connection's own way of
// copying, and nothing may be flushed or hijacked in a transaction.
func TestReaderFromAndTransactions(t *testing.T) {
	w := newWorld(t, "sqlite")
	n := w.node(func(o *idempotency.Options, d *database) { o.MaxAnswer = 1000 })
	rest := bytes.Repeat([]byte("x"), 1<<20)
	h := idempotency.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(w, struct{ io.Reader }{bytes.NewReader(rest)}) // a reader, and nothing more
	}), n.ledger, &n.opts)
	rec := &readerFrom{ResponseRecorder: httptest.NewRecorder()}
	req := httptest.NewRequest("POST", "/orders", nil)
	req.Pattern = "POST /orders"
	req.Header.Set("Authorization", "Bearer acme")
	req.Header.Set("Idempotency-Key", newKey())
	h.ServeHTTP(rec, req)
	if rec.copied == 0 || rec.Body.Len() != len(rest) {
		t.Errorf("%d bytes were copied by the connection, of %d", rec.copied, rec.Body.Len())
	}

	tx := w.node(func(o *idempotency.Options, d *database) { o.Begin, o.MaxBuffer = d.begin, 1<<20 })
	tx.handle("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		insertOrder(r.Context(), keyIn(r))
		if _, _, err := http.NewResponseController(w).Hijack(); err == nil {
			t.Error("the connection could be taken before the commit")
		}
		io.WriteString(w, "a")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		for range 3 {
			w.Write(rest[:500_000])
		}
	})
	key := newKey()
	if a := tx.send("POST", "/orders", key, ""); a.status != 500 || tx.count("SELECT count(*) FROM shop_order") != 0 {
		t.Errorf("an answer that can't be held: %s", a)
	}
}

type readerFrom struct {
	*httptest.ResponseRecorder
	copied int64
}

func (r *readerFrom) ReadFrom(src io.Reader) (int64, error) {
	n, err := io.Copy(r.ResponseRecorder.Body, src)
	r.copied += n
	return n, err
}

// The request arrives at the handler as it was sent, body and all; a body that is
// too large does not.
func TestRequestReachesHandler(t *testing.T) {
	w := newWorld(t, "sqlite")
	n := w.node(func(o *idempotency.Options, _ *database) { o.MaxBody = 100 })
	type ctxKey struct{}
	n.mux.Handle("PATCH /orders/{id}", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(context.WithValue(r.Context(), ctxKey{}, "value"), time.Hour)
		defer cancel()
		idempotency.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			_, deadline := r.Context().Deadline()
			key, ok := idempotency.KeyOf(r.Context())
			fmt.Fprintf(w, "%s %s %v %s %v %v %s %v", r.PathValue("id"), body, err, r.Context().Value(ctxKey{}), deadline, ok, key, r.Header["X-A"])
		}), n.ledger, &n.opts).ServeHTTP(w, r.WithContext(ctx))
	}))
	a := n.send("PATCH", "/orders/7", "k1", "the body", "X-A: 1", "X-A: 2")
	if want := "7 the body <nil> value true true acme/patch.orders._/k1 [1 2]"; a.body != want {
		t.Errorf("the handler got %q", a.body)
	}
	if a := n.send("PATCH", "/orders/7", "k2", strings.Repeat("x", 101)); a.status != 413 || a.code() != "too-large" {
		t.Errorf("a body that is too large: %s", a)
	}
	// GET passes through, with and without a key.
	n.handle("GET /orders", func(w http.ResponseWriter, r *http.Request) {
		_, ok := idempotency.KeyOf(r.Context())
		fmt.Fprint(w, ok)
	})
	if a := n.send("GET", "/orders", "k3", ""); a.body != "false" {
		t.Errorf("GET: %s", a)
	}
}

// In front of a mux, the middleware finds the route itself; a route that nobody
// declared does not run, and a path without a route is the mux's business.
func TestInFrontOfMux(t *testing.T) {
	w := newWorld(t, "sqlite")
	n := w.node(nil)
	mux := http.NewServeMux()
	runs := 0
	run := func(w http.ResponseWriter, r *http.Request) { runs++; fmt.Fprintf(w, "%s %d", r.Pattern, runs) }
	mux.HandleFunc("POST /orders", run)
	mux.HandleFunc("POST /undeclared", run)
	mux.HandleFunc("/refunds", run)
	n.mux.Handle("/", idempotency.NewHandler(mux, n.ledger, &n.opts))
	if a := n.send("POST", "/orders", "k", ""); a.body != "POST /orders 1" {
		t.Error(a)
	}
	if a := n.send("POST", "/refunds", "k", ""); a.body != "/refunds 2" {
		t.Error(a)
	}
	if a := n.send("POST", "/orders", "k", ""); a.body != "POST /orders 1" || !a.replayed() {
		t.Error(a)
	}
	if a := n.send("POST", "/undeclared", "k", ""); a.status != 500 || runs != 2 || !strings.Contains(w.logs.String(), `idempotency.Route{Pattern: \\\"POST /undeclared\\\"}`) && !strings.Contains(w.logs.String(), "POST /undeclared") {
		t.Error(a, w.logs.String())
	}
	if a := n.send("POST", "/nowhere", "k", ""); a.status != 404 {
		t.Error(a)
	}
	if a := n.send("GET", "/orders", "k", ""); a.status != 405 {
		t.Error(a)
	}
}

// The contract decides which answers are final.
func TestFinalByContract(t *testing.T) {
	onlySuccess := idempotency.DefaultContract()
	onlySuccess.Stored.Outcomes = contract.StoresSuccess
	w := newWorld(t, "sqlite")
	n := w.node(func(o *idempotency.Options, _ *database) { o.Contract = &onlySuccess })
	runs := 0
	n.handle("POST /orders", func(w http.ResponseWriter, r *http.Request) { runs++; w.WriteHeader(422) })
	for range 2 {
		if a := n.send("POST", "/orders", "k", ""); a.status != 422 || a.replayed() {
			t.Error(a)
		}
	}
	if runs != 2 {
		t.Errorf("%d runs", runs)
	}
}

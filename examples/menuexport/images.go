package menuexport

import (
	"encoding/json"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/httpapi"
	"github.com/semel-dev/semel/httpapi/problem"
)

// Images serves GET /menus/{id}/images/{image}: the picture that an operation of
// the asker's own account has made, fetched from the generator. Everything else,
// somebody else's picture too, is answered as an operation that never existed.
func Images(ledger *semel.Ledger, identify func(*http.Request) (httpapi.Identity, error), generator *url.URL) http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			to := *generator
			to.Path = path.Join("/", generator.Path, "images", path.Base(r.In.URL.Path))
			r.Out.URL = &to
			r.Out.Host = generator.Host
			r.Out.Header.Del("Cookie")
			r.Out.Header.Del("Authorization")
		},
		ModifyResponse: func(resp *http.Response) error {
			// A picture never changes, but who may see it does: the browser keeps it, and
			// asks every time. Another account may have signed in there.
			resp.Header.Set("Cache-Control", "private, no-cache")
			resp.Header.Set("Vary", "Cookie, Authorization")
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			problem.Write(w, problem.Of(&semel.Error{Op: "image", Code: semel.CodeUnavailable, Recorded: semel.RecordedYes,
				Msg: "the image generator does not answer; the picture is safe", Hint: "try again in a moment", Err: err}))
		},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /menus/{id}/images/{image}", func(w http.ResponseWriter, r *http.Request) {
		who, err := identify(r)
		if err != nil {
			problem.Write(w, problem.Of(err))
			return
		}
		key := semel.Key{Account: who.Account, Kind: KindName, ID: r.PathValue("id")}
		op, err := ledger.Get(r.Context(), key)
		var made result
		if err == nil && (json.Unmarshal(op.Result, &made) != nil || made.ImageURL != r.URL.Path) {
			err = &semel.Error{Op: "image", Code: semel.CodeNotFound, Msg: "this operation has no such picture"}
		}
		if err != nil {
			problem.Write(w, problem.Of(err))
			return
		}
		proxy.ServeHTTP(w, r)
	})
	return mux
}

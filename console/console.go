// Package console is the operator's page: what is going on, one operation in
// full, and the queue of what nobody knows.
//
// It is files, and speaks only the HTTP interface, so it can do nothing that
// `semel op` can't. Mount it on the origin of that interface:
//
//	mux.Handle("/console/", console.Handler())
//
// People sign in with an operator's token, which the interface exchanges for a
// cookie that no script can read.
package console

import (
	"embed"
	"io/fs"
	"net/http"
)

//go:embed static
var static embed.FS

// policy lets the page run its own scripts and styles and nothing else, and be
// framed by nobody.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// Handler serves the console under /console/. It holds no state and needs no
// sign-in by itself: the files are the same for everybody.
func Handler() http.Handler {
	files, err := fs.Sub(static, "static")
	if err != nil {
		panic(err) // the folder is embedded: it is there
	}
	serve := http.StripPrefix("/console", http.FileServerFS(files))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/console" {
			http.Redirect(w, r, "/console/", http.StatusPermanentRedirect)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-cache")
		serve.ServeHTTP(w, r)
	})
}

// Package page is the menu export for people: a page on which a menu is typed and
// its picture appears, beside three counts that must agree, and switches that
// cause real faults.
//
// [New] serves, on one origin:
//
//	/                   the page, static/index.html
//	/assets/            what it is made of: plain CSS and ES modules, as they are
//	/sdk/               @semel/browser
//	/v1/…               the HTTP interface of httpapi.Server
//	/menus/…/images/…   pictures, to the account that owns them
//	/demo/counts        what the database and the generator count
//	/demo/causes        the switches, and what they have done
//
// The page uses the same HTTP interface as everybody; what begins with /demo is
// for looking behind the scenes and is not needed to make a picture.
package page

import (
	"encoding/json"
	"net/http"
	"net/url"
	"sync"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/examples/menuexport"
	"github.com/semel-dev/semel/fault"
	"github.com/semel-dev/semel/httpapi"
)

// Options say what is beside the page.
type Options struct {
	// Generator is the base URL of the image generator.
	Generator *url.URL
	// Token signs a browser on this machine in by itself. Defaults to none: then
	// people type theirs.
	Token string
	// Causes are the switches. Defaults to none: then the page has none.
	Causes Switches
}

// A Site is the page and all that it needs, as one handler.
type Site struct {
	ledger  *semel.Ledger
	server  *httpapi.Server
	opts    Options
	index   []byte
	handler *fault.Handler
	cross   *http.CrossOriginProtection

	mu      sync.Mutex
	armed   bool // the next answer is to be lost
	losses  []*Loss
	counted map[string]count // by account
}

// New makes a site. Close it when the server has ended.
func New(ledger *semel.Ledger, server *httpapi.Server, options *Options) (*Site, error) {
	s := &Site{ledger: ledger, server: server, opts: *options, cross: http.NewCrossOriginProtection(), counted: map[string]count{}}
	files, err := readFiles()
	if err != nil {
		return nil, err
	}
	s.index = files["/index.html"].body
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.page)
	mux.Handle("GET /assets/", files)
	mux.Handle("GET /sdk/", files)
	mux.Handle("GET /menus/", menuexport.Images(ledger, server.Identify, s.opts.Generator))
	mux.HandleFunc("GET /demo/counts", s.counts)
	mux.HandleFunc("GET /demo/causes", s.causes)
	mux.HandleFunc("PUT /demo/causes", s.setCauses)
	mux.Handle("/", server)
	s.handler = fault.NewHandler(secured(mux))
	return s, nil
}

// Close ends what faults hold.
func (s *Site) Close() error { return s.handler.Close() }

// ServeHTTP answers one request.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if loss := s.aim(r); loss != nil {
		defer s.lost(loss)
	}
	s.handler.ServeHTTP(w, r)
}

// secured sets the headers that a page needs; an answer of the interface may
// have stricter ones.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "+
			"connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		next.ServeHTTP(w, r)
	})
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	json.NewEncoder(w).Encode(v)
}

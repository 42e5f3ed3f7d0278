package retryhttp_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/retryhttp"
)

// A keyed POST is never turned into a GET that carries the key, also in a client which
// follows every redirect, over several hops, and under any contract.
func TestRedirectDoesNotCarryTheKey(t *testing.T) {
	for _, name := range []string{contract.IETF, contract.Idempotent, contract.Opaque} {
		for _, code := range []int{301, 302, 303} {
			h := &recorder{}
			mux := http.NewServeMux()
			mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
				h.ServeHTTP(w, r)
				switch r.URL.Path {
				case "/orders":
					http.Redirect(w, r, "/there", code)
				case "/there":
					http.Redirect(w, r, "/done", code)
				}
			})
			server := httptest.NewServer(mux)
			defer server.Close()
			tr := retryhttp.New(server.Client().Transport, quick(preset(t, name)))
			for _, inContext := range []bool{true, false} {
				h.seen = nil
				ctx := t.Context()
				if inContext && name != contract.Opaque {
					ctx = keyed(t)
				}
				req := request(t, ctx, "POST", server.URL+"/orders", "a=1")
				if !inContext {
					req.Header.Set("Idempotency-Key", "once")
				}
				resp, err := (&http.Client{Transport: tr}).Do(req)
				if err != nil {
					t.Fatal(err)
				}
				text(t, resp)
				all := h.all()
				if len(all) != 3 || all[0].method != "POST" || all[0].key == "" && name != contract.Opaque {
					t.Fatalf("%s %d: %+v", name, code, all)
				}
				for _, s := range all[1:] {
					if s.method != "GET" || s.key != "" {
						t.Errorf("%s %d: %+v", name, code, s)
					}
				}
				if req.Header.Get("Idempotency-Key") == "" != inContext {
					t.Error("the caller's request was changed")
				}
			}
		}
	}
}

// A redirect that keeps the method keeps the key: it is the same request, elsewhere.
func TestRedirectWithTheSameMethod(t *testing.T) {
	h := &recorder{script: []func(http.ResponseWriter, *http.Request){
		func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/there", 308) }, status(201)}}
	server := httptest.NewServer(h)
	defer server.Close()
	tr := retryhttp.New(server.Client().Transport, quick(preset(t, contract.Idempotent)))
	resp, err := (&http.Client{Transport: tr}).Do(request(t, keyed(t), "POST", server.URL, "a=1"))
	if err != nil {
		t.Fatal(err)
	}
	text(t, resp)
	if all := h.all(); len(all) != 2 || all[1].method != "POST" || all[1].key != "once" || all[1].body != "a=1" {
		t.Errorf("%+v", all)
	}
}

// The transport's own client follows for those who read, and leaves the rest alone.
func TestClientLeavesRedirectsToTheCaller(t *testing.T) {
	h := &recorder{script: []func(http.ResponseWriter, *http.Request){
		func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/there", 307) }}}
	server := httptest.NewServer(h)
	defer server.Close()
	client := retryhttp.New(server.Client().Transport, quick(preset(t, contract.Idempotent))).Client()
	resp, err := client.Do(request(t, keyed(t), "POST", server.URL, "a=1"))
	if err != nil || resp.StatusCode != 307 || len(h.all()) != 1 {
		t.Fatalf("%v, %d arrived", err, len(h.all()))
	}
	text(t, resp)
	h.seen = nil
	resp, err = client.Do(request(t, t.Context(), "GET", server.URL, ""))
	if err != nil || len(h.all()) != 10 {
		t.Fatalf("%v, %d arrived", err, len(h.all()))
	}
	text(t, resp)
}

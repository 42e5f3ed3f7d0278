package effect

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/fault"
)

// On HTTP/2, net/http's transport repeats any request whose stream was reset with
// PROTOCOL_ERROR, without end. Ours sends once, and counts once.
func TestNoHiddenResendOverHTTP2(t *testing.T) {
	idem := mustPreset(t, contract.Idempotent)
	for _, c := range []struct {
		code string
		want contract.Proves
	}{{"PROTOCOL_ERROR", contract.Unknown}, {"INTERNAL_ERROR", contract.Unknown}, {"REFUSED_STREAM", contract.NotSent}} {
		s := newService(t, answerWith(200, `{}`))
		target, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		certs := httptest.NewTLSServer(nil)
		t.Cleanup(certs.Close)
		proxy, err := fault.NewProxy(target, &fault.ProxyOptions{
			TLS:   &tls.Config{Certificates: certs.TLS.Certificates},
			Rules: []fault.Rule{fault.MustRule("reset-stream path=/o code=" + c.code)},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { proxy.Close() })
		address, err := proxy.Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		transport := certs.Client().Transport.(*http.Transport).Clone()
		transport.ForceAttemptHTTP2 = true
		t.Cleanup(transport.CloseIdleConnections)
		h := newEffect(t, idem, HTTPSpec{URL: address + "/o"}, &HTTPOptions{Transport: transport})
		r := Do(context.Background(), h, callUnder(idem))
		if r.Proof.Proves != c.want || r.Sends != 1 || s.count() != 1 {
			t.Errorf("%s: %+v, %d counted, %d arrived", c.code, r.Proof, r.Sends, s.count())
		}
		if h.fresh == h.kept {
			t.Error("opaque calls would share connections")
		}
	}
}

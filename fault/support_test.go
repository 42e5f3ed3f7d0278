package fault

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// shop is a service of which each test counts what really happened. Its
// bodies are the note's title; its answers name the note's number.
type shop struct {
	mu      sync.Mutex
	bodies  []string // of completed requests
	broken  []string // bodies as far as they came
	proto   string
	touched chan struct{} // one for each request, completed or broken
}

func newShop() *shop { return &shop{touched: make(chan struct{}, 1000)} }

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	s.mu.Lock()
	s.proto = r.Proto
	if err != nil {
		s.broken = append(s.broken, string(body))
	} else {
		s.bodies = append(s.bodies, string(body))
	}
	n := len(s.bodies)
	s.mu.Unlock()
	s.touched <- struct{}{}
	if err != nil {
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusCreated)
	io.WriteString(w, answer(n))
}

// wait blocks until the shop has had one more request, whole or broken.
func (s *shop) wait(t testing.TB) {
	t.Helper()
	select {
	case <-s.touched:
	case <-ctxFor(t).Done():
		t.Fatal("nothing reached the upstream")
	}
}

// answer is what the shop says to the nth completed request.
func answer(n int) string { return "note " + strings.Repeat("#", n) }

func (s *shop) completed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bodies)
}

func (s *shop) partial() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.broken...)
}

// wire kinds over which everything is tested.
var kinds = []string{"http1", "tls-h2", "h2c", "tls-http1"}

// serve starts handler as the given kind.
func serve(t testing.TB, kind string, handler http.Handler) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(handler)
	srv.Config.ConnContext = ConnContext
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that a test has cut
	switch kind {
	case "http1":
		srv.Start()
	case "tls-http1":
		srv.StartTLS()
	case "tls-h2":
		srv.EnableHTTP2 = true
		srv.StartTLS()
	case "h2c":
		srv.Config.Protocols = new(http.Protocols)
		srv.Config.Protocols.SetUnencryptedHTTP2(true)
		srv.Start()
	}
	t.Cleanup(srv.Close)
	return srv
}

// transport returns the client's side of serve.
func transport(t testing.TB, kind string, srv *httptest.Server) *http.Transport {
	t.Helper()
	tr := &http.Transport{Protocols: new(http.Protocols)}
	switch kind {
	case "http1", "tls-http1":
		tr.Protocols.SetHTTP1(true)
	case "tls-h2":
		tr.Protocols.SetHTTP2(true)
	case "h2c":
		tr.Protocols.SetUnencryptedHTTP2(true)
	}
	if srv != nil && srv.Certificate() != nil {
		tr.TLSClientConfig = &tls.Config{RootCAs: srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	}
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// result is what a client has seen of one request.
type result struct {
	status int
	body   string
	err    error // of the request, or of reading the answer
}

func send(client http.RoundTripper, method, url, body string) result {
	return sendCtx(context.Background(), client, method, url, body)
}

func sendCtx(ctx context.Context, client http.RoundTripper, method, url, body string) result {
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, reader)
	if err != nil {
		return result{err: err}
	}
	resp, err := client.RoundTrip(req)
	if err != nil {
		return result{err: err}
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	return result{resp.StatusCode, string(got), err}
}

// ctxFor bounds every wait of a test.
func ctxFor(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// noLeaks fails the test where goroutines of this package are left at its end.
func noLeaks(t testing.TB) {
	t.Helper()
	t.Cleanup(func() {
		deadline := time.Now().Add(30 * time.Second)
		for {
			buf := make([]byte, 1<<20)
			stacks := string(buf[:runtime.Stack(buf, true)])
			left := 0
			for stack := range strings.SplitSeq(stacks, "\n\n") {
				if strings.Contains(stack, "/fault.") && !strings.Contains(stack, "testing.tRunner") && !strings.Contains(stack, "testing.(*M)") {
					left++
				}
			}
			if left == 0 {
				return
			}
			if time.Now().After(deadline) {
				t.Errorf("%d goroutines left:\n%s", left, stacks)
				return
			}
			runtime.Gosched() // connections of the servers in the test end by themselves
		}
	})
}

func pemOf(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// writePair writes a certificate and its key as files.
func writePair(t testing.TB, c tls.Certificate, cert, key string) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	must(t, err)
	must(t, os.WriteFile(cert, pemOf(c.Certificate[0]), 0o600))
	must(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
}

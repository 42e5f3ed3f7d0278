package retryhttp_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/retryhttp"
)

// Whatever happens, no goroutine and no connection stays behind.
func TestNothingStaysBehind(t *testing.T) {
	everyProtocol(t, func(t *testing.T, p protocol) {
		h := &recorder{script: []func(http.ResponseWriter, *http.Request){nil}}
		n := 0
		h.script[0] = func(w http.ResponseWriter, r *http.Request) {
			h.mu.Lock()
			n++
			i := n
			h.mu.Unlock()
			switch i % 6 {
			case 0:
				panic(http.ErrAbortHandler)
			case 1:
				w.WriteHeader(503)
				io.WriteString(w, strings.Repeat("x", 200<<10))
			case 2:
				w.WriteHeader(429)
			case 3:
				w.Header().Set("Content-Length", "10")
				w.WriteHeader(409)
				io.WriteString(w, "cut")
			default:
				io.WriteString(w, strings.Repeat("y", 100))
			}
		}
		url, base := p.serve(t, h)
		var open sync.Map
		dial := (&net.Dialer{}).DialContext
		base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			w := &watchedConn{Conn: c}
			w.closed = func() { open.Delete(w) }
			open.Store(w, true)
			return w, nil
		}
		o := quick(preset(t, contract.Semel))
		o.Quota = &retryhttp.Quota{Reserve: 1e6}
		tr := retryhttp.New(base, o)
		before := runtime.NumGoroutine()
		var wg sync.WaitGroup
		for i := range 60 {
			wg.Go(func() {
				ctx, cancel := context.WithCancel(keyed(t))
				defer cancel()
				if i%5 == 0 {
					time.AfterFunc(time.Duration(i)*100*time.Microsecond, cancel)
				}
				resp, err := tr.RoundTrip(request(t, ctx, []string{"GET", "PUT"}[i%2], url, ""))
				if err != nil {
					return
				}
				switch i % 3 {
				case 0: // read to the end, and not closed
					io.Copy(io.Discard, resp.Body)
				case 1: // closed without reading
					resp.Body.Close()
				default:
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			})
		}
		wg.Wait()
		base.CloseIdleConnections()
		count := func() (n int) {
			open.Range(func(_, _ any) bool { n++; return true })
			return n
		}
		for end := time.Now().Add(time.Minute); ; runtime.Gosched() {
			base.CloseIdleConnections()
			if count() == 0 && runtime.NumGoroutine() <= before {
				return
			}
			if time.Now().After(end) {
				buf := make([]byte, 1<<20)
				t.Fatalf("%d connections are open, %d goroutines more than before\n%s", count(), runtime.NumGoroutine()-before, buf[:runtime.Stack(buf, true)])
			}
			time.Sleep(time.Millisecond)
		}
	})
}

type watchedConn struct {
	net.Conn
	once   sync.Once
	closed func()
}

func (c *watchedConn) Close() error {
	c.once.Do(c.closed)
	return c.Conn.Close()
}

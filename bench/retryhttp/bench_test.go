package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/rehttp"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/hashicorp/go-retryablehttp"
	"resty.dev/v3"

	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/retryhttp"
)

const serveEnv = "BENCH_SERVE"

// address is where the server's process listens.
var address string

func TestMain(m *testing.M) {
	if os.Getenv(serveEnv) != "" {
		serve()
		return
	}
	server := exec.Command(os.Args[0])
	server.Env = append(os.Environ(), serveEnv+"=1")
	server.Stderr = os.Stderr
	in, err := server.StdinPipe() // it ends with us
	if err != nil {
		log.Fatal(err)
	}
	out, err := server.StdoutPipe()
	if err != nil {
		log.Fatal(err)
	}
	if err := server.Start(); err != nil {
		log.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		log.Fatal(err)
	}
	address = strings.TrimSpace(line)
	code := m.Run()
	in.Close()
	server.Wait()
	os.Exit(code)
}

// serve answers at once under /now, after a millisecond under /1ms, and takes any body.
func serve() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("http://" + l.Addr().String())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/1ms" {
			time.Sleep(time.Millisecond)
		}
		io.WriteString(w, "ok")
	}))
}

// A peer sends a request in its own way, with three retries where it has any.
type peer struct {
	name string
	send func(ctx context.Context, method, url string, body []byte) error
}

func peers() []peer {
	transport := func() *http.Transport {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.Proxy = nil
		return t
	}
	idempotent, err := contract.Preset(contract.Idempotent)
	if err != nil {
		log.Fatal(err)
	}
	retryable := retryablehttp.NewClient()
	retryable.HTTPClient = &http.Client{Transport: transport()}
	retryable.Logger, retryable.RetryMax = nil, 3
	restyClient := resty.New().SetTransport(transport()).SetRetryCount(3)
	retry := failsafehttp.NewRetryPolicyBuilder().WithBackoff(100*time.Millisecond, 5*time.Second).WithMaxRetries(3).Build()
	return []peer{
		{"bare http.Client", over(transport())},
		{"semel retryhttp", over(retryhttp.New(transport(), &retryhttp.Options{Contract: &idempotent}))},
		{"go-retryablehttp", func(ctx context.Context, method, url string, body []byte) error {
			var raw any
			if body != nil {
				raw = body
			}
			req, err := retryablehttp.NewRequestWithContext(ctx, method, url, raw)
			if err != nil {
				return err
			}
			return finish(retryable.Do(req))
		}},
		{"failsafe-go", over(failsafehttp.NewRoundTripper(transport(), retry))},
		{"rehttp", over(rehttp.NewTransport(transport(), rehttp.RetryAll(rehttp.RetryMaxRetries(3), rehttp.RetryStatusInterval(500, 600)), rehttp.ExpJitterDelay(100*time.Millisecond, 5*time.Second)))},
		{"resty v3", func(ctx context.Context, method, url string, body []byte) error {
			r := restyClient.R().SetContext(ctx)
			if body != nil {
				r.SetBody(body)
			}
			resp, err := r.Execute(method, url)
			if err != nil {
				return err
			}
			if resp.StatusCode() != 200 {
				return fmt.Errorf("status %d", resp.StatusCode())
			}
			return nil
		}},
	}
}

// over sends through a client over a round tripper.
func over(rt http.RoundTripper) func(context.Context, string, string, []byte) error {
	client := &http.Client{Transport: rt}
	return func(ctx context.Context, method, url string, body []byte) error {
		var r io.Reader
		if body != nil {
			r = bytes.NewReader(body)
		}
		req, err := http.NewRequestWithContext(ctx, method, url, r)
		if err != nil {
			return err
		}
		return finish(client.Do(req))
	}
}

func finish(resp *http.Response, err error) error {
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != 200 {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

// cost is what one request takes in the client's process.
type cost struct{ allocs, bytes float64 }

func measure(t *testing.T, p peer, n int, method, path string, body []byte) cost {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context()) // as callers have it
	defer cancel()
	for range 20 {
		if err := p.send(ctx, method, address+path, body); err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range n {
		if err := p.send(ctx, method, address+path, body); err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
	}
	runtime.ReadMemStats(&after)
	return cost{float64(after.Mallocs-before.Mallocs) / float64(n), float64(after.TotalAlloc-before.TotalAlloc) / float64(n)}
}

// times sends by turns, so that whatever else the machine does meets all alike, and
// returns the median time of each.
func times(t *testing.T, all []peer, rounds int) []time.Duration {
	t.Helper()
	took := make([][]time.Duration, len(all))
	for range rounds {
		for i, p := range all {
			start := time.Now()
			if err := p.send(t.Context(), "GET", address+"/1ms", nil); err != nil {
				t.Fatalf("%s: %v", p.name, err)
			}
			took[i] = append(took[i], time.Since(start))
		}
	}
	medians := make([]time.Duration, len(all))
	for i := range took {
		slices.Sort(took[i])
		medians[i] = took[i][len(took[i])/2]
	}
	return medians
}

// The limits of what retryhttp may cost, over bare in the same run.
const (
	mostAllocs = 20   // more for a GET
	mostTime   = 1.10 // of a GET that takes a millisecond
	mostBytes  = 1.10 // of a PUT with 1 MiB
)

func TestRatios(t *testing.T) {
	all := peers()
	mebibyte := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	gets, puts := make([]cost, len(all)), make([]cost, len(all))
	for i, p := range all {
		gets[i] = measure(t, p, 2000, "GET", "/now", nil)
		puts[i] = measure(t, p, 100, "PUT", "/now", mebibyte)
	}
	medians := times(t, all, 1000)
	t.Logf("%-18s %22s %20s %24s", "", "GET: allocations", "GET, 1 ms: time", "PUT of 1 MiB: bytes")
	for i, p := range all {
		t.Logf("%-18s %8.1f (%+6.1f) %10s (%.3f ×) %14.0f (%.2f ×)", p.name, gets[i].allocs, gets[i].allocs-gets[0].allocs,
			medians[i].Round(time.Microsecond), float64(medians[i])/float64(medians[0]), puts[i].bytes, puts[i].bytes/puts[0].bytes)
	}
	if more := gets[1].allocs - gets[0].allocs; more > mostAllocs {
		t.Errorf("a GET takes %.1f allocations more than bare; at most %d", more, mostAllocs)
	}
	if ratio := float64(medians[1]) / float64(medians[0]); ratio > mostTime {
		t.Errorf("a GET takes %.3f × the time of bare; at most %.2f", ratio, mostTime)
	}
	if ratio := puts[1].bytes / puts[0].bytes; ratio > mostBytes {
		t.Errorf("a PUT takes %.2f × the bytes of bare; at most %.2f", ratio, mostBytes)
	}
}

func BenchmarkGET(b *testing.B)     { each(b, "GET", "/now", nil) }
func BenchmarkGET1ms(b *testing.B)  { each(b, "GET", "/1ms", nil) }
func BenchmarkPUT1MiB(b *testing.B) { each(b, "PUT", "/now", make([]byte, 1<<20)) }

func each(b *testing.B, method, path string, body []byte) {
	for _, p := range peers() {
		b.Run(strings.ReplaceAll(p.name, " ", "_"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := p.send(b.Context(), method, address+path, body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

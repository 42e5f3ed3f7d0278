package retryhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/retryhttp"
)

// Send transmits once, whatever comes of it, and says what it proves.
func TestSendTransmitsOnce(t *testing.T) {
	cut := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "half")
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	everyProtocol(t, func(t *testing.T, p protocol) {
		for name, c := range map[string]struct {
			do      func(http.ResponseWriter, *http.Request)
			proves  contract.Proves
			cause   contract.Cause
			arrival contract.Arrival
			body    string
			wait    time.Duration
			fails   bool
		}{
			"answered":    {do: status(201), proves: contract.Applied, cause: contract.CauseSuccess, arrival: contract.ArrivedComplete, body: "Created"},
			"long":        {do: func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("x", 5000)) }, proves: contract.Applied, cause: contract.CauseSuccess, arrival: contract.ArrivedLimited, body: strings.Repeat("x", 1000)},
			"turned away": {do: status(503, "Retry-After", "3"), proves: contract.Unknown, cause: contract.CauseIntermediary, arrival: contract.ArrivedComplete, body: "Service Unavailable", wait: 3 * time.Second},
			"refused":     {do: status(404), proves: contract.Refused, cause: contract.CauseRejected, arrival: contract.ArrivedComplete, body: "Not Found"},
			"cut":         {do: cut, proves: contract.Unknown, cause: contract.CauseCutAnswer, arrival: contract.ArrivedCut, body: "half", fails: true},
			"lost":        {do: lose, proves: contract.Unknown, fails: true},
		} {
			h := &recorder{script: []func(http.ResponseWriter, *http.Request){c.do}}
			url, base := p.serve(t, h)
			var report retryhttp.Report
			ctx := retryhttp.With(t.Context(), retryhttp.Call{Key: "once", Report: &report})
			sent, err := retryhttp.New(base, quick(preset(t, contract.Idempotent))).Send(request(t, ctx, "POST", url, "a=1"), 1000)
			if err != nil {
				t.Fatal(err)
			}
			all := h.all()
			if len(all) != 1 || all[0].id != sent.AttemptID || sent.AttemptID == "" || all[0].key != "once" || sent.Proof.Sends != 1 || report.Attempts != 1 || report.Evidence.Last != sent.Proof {
				t.Errorf("%s: %+v; %+v; %+v", name, all, sent, report)
			}
			if sent.Proof.Proves != c.proves || c.cause != "" && sent.Proof.Cause != c.cause || sent.Proof.WaitAtLeast != c.wait || sent.Wire.Arrival != c.arrival || (sent.Err != nil) != c.fails {
				t.Errorf("%s: %+v, %+v, %v", name, sent.Proof, sent.Wire, sent.Err)
			}
			if sent.Answer == nil != (c.arrival == "") || sent.Answer != nil && string(sent.Answer.Body) != c.body {
				t.Errorf("%s: %+v", name, sent.Answer)
			}
		}
	})
}

// The timeout of a transmission covers its body.
func TestSendTimesTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			resp := answer(200, "")
			resp.Body, resp.ContentLength = io.NopCloser(errorAfter{r.Context()}), -1
			return resp, nil
		})
		o := quick(preset(t, contract.Idempotent))
		o.AttemptTimeout = 5 * time.Second
		start := time.Now()
		sent, err := retryhttp.New(base, o).Send(request(t, keyed(t), "POST", "http://api.example/", "a=1"), 1000)
		if err != nil {
			t.Fatal(err)
		}
		if !errors.Is(sent.Err, context.DeadlineExceeded) || sent.Proof.Cause != contract.CauseCutAnswer || time.Since(start) != 5*time.Second {
			t.Errorf("%+v after %s", sent, time.Since(start))
		}
	})
}

// errorAfter is a body that ends with its context.
type errorAfter struct{ ctx context.Context }

func (e errorAfter) Read([]byte) (int, error) {
	<-e.ctx.Done()
	return 0, context.Cause(e.ctx)
}

func TestSendIsNotBegunWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(keyed(t))
	cancel()
	closed := false
	req := request(t, ctx, "POST", "http://api.example/", "a=1")
	req.Body = &closeWatcher{Reader: req.Body, closed: &closed}
	_, err := retryhttp.New(roundTripper(hangs), nil).Send(req, 0)
	if !errors.Is(err, retryhttp.ErrNotSent) || !errors.Is(err, context.Canceled) || !closed {
		t.Errorf("%v, body closed: %t", err, closed)
	}
}

// A loop of one's own, made of the parts: the contract decides, the backoff waits.
func ExampleTransport_Send() {
	first := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if first {
			first = false
			panic(http.ErrAbortHandler) // the answer is lost
		}
		w.WriteHeader(http.StatusCreated)
	}))
	defer server.Close()
	api, err := contract.Preset(contract.Idempotent)
	if err != nil {
		panic(err)
	}
	transport := retryhttp.New(nil, &retryhttp.Options{Contract: &api})
	var evidence contract.Evidence
	start := time.Now()
	ctx := retryhttp.With(context.Background(), retryhttp.Call{Key: "8e03978e-40d5-43dd-bc93-6894a57f9324", FirstSent: start})
	for n := 1; ; n++ {
		req, err := http.NewRequestWithContext(ctx, "POST", server.URL, strings.NewReader("a=1"))
		if err != nil {
			panic(err)
		}
		sent, err := transport.Send(req, 1<<20)
		if err != nil {
			panic(err)
		}
		evidence = evidence.Add(sent.Proof)
		next := api.Recover(contract.Situation{Evidence: evidence, Age: time.Since(start), Margin: 30 * time.Second})
		fmt.Println(sent.Proof.Proves, "→", next.Step)
		if next.Step != contract.StepReCall {
			break
		}
		time.Sleep(retryhttp.Backoff{Base: time.Millisecond}.Wait(n, sent.Proof.WaitAtLeast))
	}
	// Output:
	// unknown → call_again
	// applied → settle
}

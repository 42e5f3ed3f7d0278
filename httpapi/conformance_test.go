package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/httpapi"
	"github.com/semel-dev/semel/httpapi/problem"
	"github.com/semel-dev/semel/sqlite"
	"github.com/semel-dev/semel/storetest"
)

// The ledger's rules hold over HTTP as they do in a program, by PUT and by POST.
func TestLedgerOverHTTP(t *testing.T) {
	for _, method := range []string{"PUT", "POST"} {
		t.Run(method, func(t *testing.T) {
			storetest.RunLedger(t, func(t *testing.T) storetest.LedgerHarness { return overHTTP(t, method) })
		})
	}
}

func overHTTP(t *testing.T, method string) storetest.LedgerHarness {
	clock := storetest.NewClock()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "semel.db"), &sqlite.Options{Clock: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	ledger, err := semel.New(t.Context(), store, &semel.Options{Kinds: storetest.LedgerKinds(), Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := httpapi.NewTokens([]httpapi.Token{
		{Hash: httpapi.HashToken("acme"), Account: "acme"},
		{Hash: httpapi.HashToken("bolt"), Account: "bolt"},
		{Hash: httpapi.HashToken("mei"), Operator: true, Name: "mei", Accounts: []string{"acme", "bolt"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(httpapi.New(ledger, &httpapi.Options{Tokens: tokens, Logger: quiet}))
	t.Cleanup(func() {
		server.Close()
		ledger.Close()
		store.Close()
	})
	return storetest.LedgerHarness{API: overWire{server.URL, server.Client(), method}, Ledger: ledger, Clock: clock}
}

// overWire is a ledger as a client of the interface sees it.
type overWire struct {
	url    string
	client *http.Client
	method string // of Accept
}

// ask sends a request with the token of that name and decodes the answer.
func (o overWire) ask(ctx context.Context, token, method, target string, body []byte, answer any, headers ...string) (http.Header, error) {
	r, err := http.NewRequestWithContext(ctx, method, o.url+target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := o.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if err := description.check(method, r.URL.EscapedPath(), reply{resp.StatusCode, resp.Header, text, nil}); err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, target, err)
	}
	if resp.StatusCode >= 400 {
		p, ok := problem.Decode(resp.StatusCode, resp.Header, text)
		if !ok {
			return nil, fmt.Errorf("status %d: %s", resp.StatusCode, text)
		}
		return nil, p.Err()
	}
	return resp.Header, json.Unmarshal(text, answer)
}

func target(key semel.Key) string {
	return "/v1/operations/" + url.PathEscape(key.Kind) + "/" + url.PathEscape(key.ID)
}

func (o overWire) Accept(ctx context.Context, r semel.Request) (acc semel.Acceptance, err error) {
	headers := []string{}
	if r.AttemptID != "" {
		headers = append(headers, "Attempt-Id", r.AttemptID)
	}
	if !r.AcceptUntil.IsZero() {
		headers = append(headers, "Accept-Until", r.AcceptUntil.Format(time.RFC3339Nano))
	}
	at := target(r.Key)
	if o.method == "POST" {
		headers = append(headers, "Idempotency-Key", strconv.Quote(r.Key.ID))
		at = "/v1/operations/" + url.PathEscape(r.Key.Kind)
	}
	h, err := o.ask(ctx, r.Key.Account, o.method, at, r.Params, &acc.Operation, headers...)
	acc.Replayed = h.Get("Idempotency-Replayed") == "true"
	return acc, err
}

func (o overWire) Get(ctx context.Context, key semel.Key) (op semel.Operation, err error) {
	_, err = o.ask(ctx, key.Account, "GET", target(key), nil, &op)
	return op, err
}

func (o overWire) Wait(ctx context.Context, key semel.Key) (op semel.Operation, err error) {
	_, err = o.ask(ctx, key.Account, "GET", target(key), nil, &op, "Prefer", "wait=60")
	if ctx.Err() != nil {
		return o.Get(context.WithoutCancel(ctx), key)
	}
	return op, err
}

func (o overWire) Abandon(ctx context.Context, key semel.Key) (op semel.Operation, err error) {
	_, err = o.ask(ctx, key.Account, "DELETE", target(key), nil, &op)
	return op, err
}

func (o overWire) List(ctx context.Context, q semel.Query) (semel.Page, error) {
	values := url.Values{"page_size": {strconv.Itoa(max(1, q.Size))}}
	for name, value := range map[string]string{"kind": q.Kind, "state": string(q.State), "page_token": q.After} {
		if value != "" {
			values.Set(name, value)
		}
	}
	token, at := "mei", "/v1/operator/operations"
	if len(q.Accounts) == 1 {
		token, at = q.Accounts[0], "/v1/operations"
	} else if q.Unacknowledged {
		values.Set("unacknowledged", "true")
	}
	var page struct {
		Operations []semel.Operation
		Next       string `json:"next_page_token"`
	}
	_, err := o.ask(ctx, token, "GET", at+"?"+values.Encode(), nil, &page)
	return semel.Page{Operations: page.Operations, Next: page.Next}, err
}

func (o overWire) History(ctx context.Context, key semel.Key) (h semel.History, err error) {
	_, err = o.ask(ctx, key.Account, "GET", target(key)+"/history", nil, &h)
	return h, err
}

func (o overWire) Resolve(ctx context.Context, key semel.Key, r semel.Resolution) (op semel.Operation, err error) {
	body, err := json.Marshal(r)
	if err != nil {
		return op, err
	}
	_, err = o.ask(ctx, r.By, "PUT", "/v1/operator/operations/"+key.String()+"/resolution", body, &op, "If-Match", strconv.Quote(strconv.FormatInt(r.Revision, 10)))
	return op, err
}

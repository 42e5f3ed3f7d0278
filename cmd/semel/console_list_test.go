package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/httpapi"
	"github.com/semel-dev/semel/internal/node"
	"github.com/semel-dev/semel/internal/pgtest"
)

// A library is a store with many operations behind the HTTP interface: half of
// them belong to one account, the rest to a hundred; nearly all succeeded, and
// one in a thousand is in each of the other states or of a rare kind.
type library struct {
	t       testing.TB
	store   semel.Store
	client  *http.Client
	url     string
	all     string // the token of an operator who sees everything
	few     string // of one who sees big and small-7
	written int
}

func openLibrary(t testing.TB, database string) *library {
	t.Helper()
	l := &library{t: t, client: &http.Client{}, all: httpapi.NewToken(), few: httpapi.NewToken()}
	var err error
	if l.store, err = node.OpenStore(t.Context(), database, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.store.Close() })
	ledger, err := semel.New(t.Context(), l.store, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ledger.Close() })
	tokens, err := httpapi.NewTokens([]httpapi.Token{
		{Hash: httpapi.HashToken(l.all), Operator: true, Accounts: []string{"*"}, Name: "kim"},
		{Hash: httpapi.HashToken(l.few), Operator: true, Accounts: []string{"big", "small-7"}, Name: "lee"}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(httpapi.New(ledger, &httpapi.Options{Tokens: tokens, Logger: slog.New(slog.DiscardHandler)}))
	t.Cleanup(server.Close)
	l.url = server.URL
	return l
}

// number n of the library: its key, and the state that it ends in.
func numbered(n int) (semel.Key, semel.State) {
	key := semel.Key{Account: "big", Kind: []string{"order", "mail", "export"}[n%3], ID: fmt.Sprintf("operation-%09d", n)}
	if n%2 == 1 {
		key.Account = fmt.Sprintf("small-%d", n/2%100)
	}
	switch n % 1000 {
	case 100, 101:
		return key, semel.NeedsReconciliation
	case 200, 201:
		return key, semel.Failed
	case 300, 301:
		return key, semel.Abandoned
	case 400, 401:
		return key, semel.Accepted
	case 500, 501:
		key.Kind = "rare"
	}
	return key, semel.Succeeded
}

// fill writes operations until there are so many, through the store.
func (l *library) fill(until int) {
	l.t.Helper()
	const batch = 1000
	for ; l.written < until; l.written += batch {
		var in []semel.Insertion
		for n := l.written; n < l.written+batch; n++ {
			key, _ := numbered(n)
			in = append(in, semel.Insertion{Key: key, State: semel.Accepted, AsSent: "v1:sha256:0", Fingerprint: "v1:sha256:0",
				Params: []byte(`{"sku":"x"}`), Request: []byte(`{"sku":"x"}`), Owner: key.ID, AttemptID: "a"})
		}
		created, err := l.store.Insert(context.Background(), in)
		if err != nil {
			l.t.Fatal(err)
		}
		var changes []semel.Change
		for i, c := range created {
			_, state := numbered(l.written + i)
			if c.Err != nil || c.Verdict != semel.Created {
				l.t.Fatalf("%s: %v, %v", in[i].Key, c.Verdict, c.Err)
			}
			if state != semel.Accepted {
				changes = append(changes, semel.Change{Key: in[i].Key, Revision: c.Operation.Revision, Token: c.Operation.Token, Owner: "o",
					State: state, Work: semel.WorkDone, Retain: 720 * time.Hour})
			}
		}
		if _, err := l.store.Apply(context.Background(), changes); err != nil {
			l.t.Fatal(err)
		}
	}
}

// A look is one question to the list: by whom, with which filters, on which page.
type look struct {
	few     bool
	filters string
	page    int
	rows    int // that a page of 100 has
}

func looks(operations int) []look {
	rare := min(100, operations/500)
	half := min(100, operations/1000)
	return []look{
		{false, "", 1, 100}, {false, "", 1000, 100}, {true, "", 1, 100},
		{false, "state=succeeded", 1, 100}, {false, "state=needs_reconciliation&unacknowledged=true", 1, rare},
		{false, "state=failed", 1, rare}, {false, "state=abandoned", 1, rare}, {false, "state=accepted", 1, rare}, {false, "state=processing", 1, 0},
		{false, "account=big", 1, 100}, {false, "account=small-7", 1, min(100, operations/200)}, {false, "account=nobody", 1, 0},
		{false, "kind=order", 1, 100}, {false, "kind=rare", 1, rare}, {false, "kind=none", 1, 0},
		{false, "account=big&kind=rare", 1, half}, {false, "account=big&state=failed", 1, half}, {false, "account=big&state=accepted", 1, half},
		{false, "account=big&kind=none", 1, 0}, {false, "account=big&state=processing", 1, 0},
		{false, "kind=rare&state=failed", 1, 0}, {false, "kind=mail&state=succeeded", 1, 100},
		{true, "state=needs_reconciliation&unacknowledged=true", 1, half}, {true, "state=processing", 1, 0}, {true, "kind=rare", 1, half},
		{true, "kind=mail&state=succeeded", 1, 100}, {true, "account=small-8", 1, 0},
	}
}

// ask asks for a page, and returns the number of its rows and the next token.
func (l *library) ask(k look, size int, token string) (rows int, next string) {
	l.t.Helper()
	who := l.all
	if k.few {
		who = l.few
	}
	req, err := http.NewRequestWithContext(context.Background(), "GET", fmt.Sprintf("%s/v1/operator/operations?page_size=%d&page_token=%s&%s",
		l.url, size, url.QueryEscape(token), k.filters), nil)
	if err != nil {
		l.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+who)
	resp, err := l.client.Do(req)
	if err != nil {
		l.t.Fatal(err)
	}
	defer resp.Body.Close()
	var page struct {
		Operations []json.RawMessage
		Next       string `json:"next_page_token"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&page); err != nil || resp.StatusCode != 200 {
		l.t.Fatalf("%s: %s, %v", k.filters, resp.Status, err)
	}
	return len(page.Operations), page.Next
}

// took is the fastest of some askings: what the machine does beside is not the
// list's.
func (l *library) took(k look) time.Duration {
	l.t.Helper()
	token := ""
	for at := 1; at < k.page; at += 10 { // ten pages in one
		_, token = l.ask(k, min(1000, 100*(k.page-at)), token)
	}
	var times []time.Duration
	rows := 0
	for range 7 {
		start := time.Now()
		rows, _ = l.ask(k, 100, token)
		times = append(times, time.Since(start))
	}
	if rows != k.rows {
		l.t.Errorf("%q, few %v, page %d: %d rows, want %d", k.filters, k.few, k.page, rows, k.rows)
	}
	return slices.Min(times)
}

// A page of the list takes as long as it has rows, whatever else there is: with a
// hundred times as many operations it takes hardly longer. With SEMEL_SOAK there
// are a million, and each page takes less than 100 ms.
func TestListStaysFast(t *testing.T) {
	if testing.Short() {
		t.Skip("fills databases")
	}
	few, many, times := 1000, 100000, 10.0
	soak := os.Getenv("SEMEL_SOAK") != ""
	if soak {
		many = 1000000
	}
	for name, database := range map[string]func() string{
		"sqlite":   func() string { return filepath.Join(t.TempDir(), "semel.db") },
		"postgres": func() string { return pgtest.Database(t) },
	} {
		t.Run(name, func(t *testing.T) {
			at := database()
			small, large := openLibrary(t, database()), openLibrary(t, at)
			small.fill(few)
			start := time.Now()
			large.fill(many)
			if node.IsPostgres(at) { // as its own housekeeping does after a while
				analyze(t, at)
			}
			t.Logf("%d operations were written in %v", many, time.Since(start).Round(time.Second))
			for i, k := range looks(many) {
				s := looks(few)[i]
				s.page = min(s.page, 1)
				before, after := small.took(s), large.took(k)
				t.Logf("%-50s few %-5v page %4d: %8.2f ms of %d, %8.2f ms of %d", k.filters, k.few, k.page, ms(before), few, ms(after), many)
				switch {
				case soak && after > 100*time.Millisecond:
					t.Errorf("%q, few %v, page %d takes %v", k.filters, k.few, k.page, after)
				case !soak && after > time.Duration(times*float64(max(before, 3*time.Millisecond))):
					// The longest part of a page with hardly a row is no part of the list.
					t.Errorf("%q, few %v, page %d takes %v; of a few it takes %v", k.filters, k.few, k.page, after, before)
				}
			}
		})
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func analyze(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "VACUUM ANALYZE"); err != nil {
		t.Fatal(err)
	}
}

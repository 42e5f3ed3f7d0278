package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/lab/internal/child"
)

// naiveSetup is what the naive server is told.
type naiveSetup struct {
	URL  string        `json:"url"`  // where orders are posted
	Keep time.Duration `json:"keep"` // how long it remembers; zero for ever
}

// naive is the server as it is often written: it looks whether it knows the ID,
// calls, and inserts. It is what some unsafe variants run instead of Semel.
// Everything that is wrong with it is wrong on purpose.
type naive struct {
	setup naiveSetup
	mu    sync.Mutex
	rows  []naiveRow
}

type naiveRow struct {
	op semel.Operation
	at time.Time
}

func naiveRole(ctx context.Context) error {
	n := &naive{}
	if err := child.Setup(&n.setup); err != nil {
		return err
	}
	ctx, stop := child.UntilOrphaned(ctx, os.Stdin)
	defer stop()
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /v1/operations/{kind}/{id}", n.put)
	mux.HandleFunc("GET /v1/operations/{kind}/{id}", n.get)
	mux.HandleFunc("GET /v1/operations", n.list)
	return child.Serve(ctx, mux)
}

// find reads. What is too old is forgotten, and nothing remembers that it was.
func (n *naive) find(id string) *semel.Operation {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, row := range n.rows {
		if row.op.Key.ID == id && (n.setup.Keep == 0 || time.Since(row.at) < n.setup.Keep) {
			return &row.op
		}
	}
	return nil
}

// put reads, then calls, then inserts; and it does not look at what it is asked.
func (n *naive) put(w http.ResponseWriter, r *http.Request) {
	params, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if op := n.find(r.PathValue("id")); op != nil {
		w.Header().Set("Idempotency-Replayed", "true")
		naiveAnswer(w, http.StatusOK, op)
		return
	}
	resp, err := http.Post(n.setup.URL, "application/json", bytes.NewReader(params))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	result, err := io.ReadAll(resp.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	op := semel.Operation{Key: semel.Key{Account: "naive", Kind: r.PathValue("kind"), ID: r.PathValue("id")},
		State: semel.Succeeded, Params: params, Result: result, Revision: 1}
	n.mu.Lock()
	n.rows = append(n.rows, naiveRow{op, time.Now()})
	n.mu.Unlock()
	naiveAnswer(w, http.StatusCreated, &op)
}

func (n *naive) get(w http.ResponseWriter, r *http.Request) {
	if op := n.find(r.PathValue("id")); op != nil {
		naiveAnswer(w, http.StatusOK, op)
		return
	}
	http.NotFound(w, r)
}

func (n *naive) list(w http.ResponseWriter, _ *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	ops := []semel.Operation{}
	for _, row := range n.rows {
		ops = append(ops, row.op)
	}
	naiveAnswer(w, http.StatusOK, map[string]any{"operations": ops})
}

func naiveAnswer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/semel-dev/semel/examples/menuexport/page"
)

// How the switches stand is a page.Causes. Each is on until it is turned off, but
// KillWorker, which turns itself off when it has killed.

const (
	slowMS    = 3000
	keptKills = 100
)

// faultControl holds the switches, and is the only one to set the generator's.
type faultControl struct {
	setup  setup
	worker *child
	log    io.Writer

	mu     sync.Mutex
	on     page.Causes
	cancel context.CancelFunc // of the watch for a held answer
}

func (f *faultControl) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /faults", func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		writeJSON(w, f.on)
	})
	mux.HandleFunc("PUT /faults", func(w http.ResponseWriter, r *http.Request) {
		var change page.Change
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4096)).Decode(&change); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		want := f.on
		if change.KillWorker != nil {
			want.KillWorker = *change.KillWorker
		}
		if change.SlowGenerator != nil {
			want.SlowGenerator = *change.SlowGenerator
		}
		if err := f.set(r.Context(), want); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		writeJSON(w, f.on)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+f.setup.Secret {
			http.Error(w, "not for you", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// set makes the switches so, with mu held.
func (f *faultControl) set(ctx context.Context, want page.Causes) error {
	delay := 0
	if want.SlowGenerator {
		delay = slowMS
	}
	body, _ := json.Marshal(map[string]any{"delay_ms": delay, "hold_answer": want.KillWorker})
	if err := call(ctx, http.MethodPut, f.setup.Generator+"/faults", body, nil); err != nil {
		return fmt.Errorf("the generator does not answer: %w", err)
	}
	if f.cancel != nil {
		f.cancel()
		f.cancel = nil
	}
	f.on = want
	if want.KillWorker {
		watch, cancel := context.WithCancel(context.Background())
		f.cancel = cancel
		go f.killWhenHeld(watch)
	}
	return nil
}

// again tells a generator that has just been started how the switches stand: it
// keeps faults in memory only.
func (f *faultControl) again() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.on.SlowGenerator && !f.on.KillWorker {
		return
	}
	if err := f.set(context.Background(), f.on); err != nil {
		fmt.Fprintln(f.log, "demo:", err)
	}
}

// killWhenHeld waits until the generator holds an answer, so that the picture is
// stored and nobody knows, and kills the worker there.
func (f *faultControl) killWhenHeld(ctx context.Context) {
	var waiting struct {
		Held []struct {
			Since time.Time `json:"since"`
		}
	}
	for len(waiting.Held) == 0 {
		if err := call(ctx, http.MethodGet, f.setup.Generator+"/faults/held?point=answer", nil, &waiting); err != nil {
			if ctx.Err() != nil {
				return
			}
			select { // the generator is starting; there is no event to wait for
			case <-ctx.Done():
				return
			case <-time.After(200 * time.Millisecond):
			}
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	f.worker.kill()
	fmt.Fprintln(f.log, "demo: the worker was killed after the generator had finished")
	next := f.on
	next.KillWorker = false
	next.Kills = append(slices.Clone(next.Kills), page.Kill{At: time.Now().UTC(), FinishedAt: waiting.Held[0].Since.UTC()})
	if extra := len(next.Kills) - keptKills; extra > 0 {
		next.Kills = next.Kills[extra:]
	}
	if err := f.set(context.WithoutCancel(ctx), next); err != nil {
		fmt.Fprintln(f.log, "demo:", err)
	}
}

// call makes one HTTP call of ours to ours; out may be nil.
func call(ctx context.Context, method, url string, body []byte, out any) error {
	return callAs(ctx, "", method, url, body, out)
}

func callAs(ctx context.Context, token, method, url string, body []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s", method, url, resp.Status)
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(out)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}

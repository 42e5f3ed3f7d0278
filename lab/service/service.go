// Package service is the external service of the fault lab: it takes orders over
// HTTP, and keeps books of its own, so that what really happened can be counted.
//
// It stands for somebody else's API, and knows nothing of the program that calls
// it. What it promises about repeated requests is in the path:
//
//	POST /orders/{promise}         {"order":"…"} → 201 with the order: the effect
//	GET  /orders/{promise}/{key}   what a key has done, or 404 "no_such_order" (queryable only)
//
// The promises are these:
//
//   - [Idempotent]: a key is done once while it is kept; a repeat is answered from
//     the books with Idempotency-Replayed, a key at work is 409, and a key that
//     comes with another order is 422.
//   - [Stored]: the same, and a server error is stored under its key too: it comes
//     back for ever.
//   - [Queryable]: a repeat is a second effect, but a key can be looked up.
//   - [Opaque]: a repeat is a second effect, and nothing can be looked up.
//
// The books count by order, which stands in the body, so a caller that gets its
// keys wrong is found out. They are a file, written before any answer: they
// survive the kill of this service.
//
// # Causing harm
//
//	GET  /books      how often each order arrived, and was done
//	     /faults/    the control of package fault, for everything under /orders/
//	PUT  /kill       {"order":"…","at":"arrived"|"done","pid":n,"drop":false}: when that
//	                 order is at that point, the process n is killed before anything else
//	                 happens; with "drop", nothing else happens
//
// The last one asks for a secret, since it kills.
package service

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/semel-dev/semel/fault"
)

// A Promise is what the service promises about repeats.
type Promise string

// The promises.
const (
	Idempotent Promise = "idempotent"
	Stored     Promise = "stored"
	Queryable  Promise = "queryable"
	Opaque     Promise = "opaque"
)

func (p Promise) protects() bool { return p == Idempotent || p == Stored }

// Options configure a [Service].
type Options struct {
	// Keep is how long a key is kept, from its effect on. Defaults to for ever.
	Keep time.Duration
	// Think is how long an effect takes. Defaults to no time.
	Think time.Duration
	// StoreErrors is the part of the [Stored] effects, from 0 to 1, that are
	// answered with a server error which is stored. Defaults to none.
	StoreErrors float64
	// Seed is that of the chance in StoreErrors. Defaults to 0.
	Seed uint64
	// Secret is asked for by /kill. Defaults to none: then there is no /kill.
	Secret string
}

// Count is what the books say of one order.
type Count struct {
	// Arrived is how often it arrived since the service started, Done how often it
	// was done, ever.
	Arrived int `json:"arrived"`
	Done    int `json:"done"`
	// Times are those of the effects.
	Times []time.Time `json:"times,omitempty"`
}

// entry is one line of the books: an effect.
type entry struct {
	Order   string    `json:"order"`
	Key     string    `json:"key,omitempty"`
	Promise Promise   `json:"promise"`
	At      time.Time `json:"at"`
	Status  int       `json:"status"`
}

// A Service takes orders. It is safe for concurrent use.
type Service struct {
	opts   Options
	faults *fault.Handler
	mux    *http.ServeMux

	mu      sync.Mutex
	file    *os.File
	done    map[string][]entry // by order
	byKey   map[string]entry   // the latest, by promise and key
	busy    map[string]string  // the order that a key is at work for
	arrived map[string]int
	kills   map[string]kill // by point and order
	random  *rand.Rand
}

// New opens the books in a folder, or begins them.
func New(dir string, options *Options) (*Service, error) {
	s := &Service{done: map[string][]entry{}, byKey: map[string]entry{}, busy: map[string]string{},
		arrived: map[string]int{}, kills: map[string]kill{}, mux: http.NewServeMux()}
	if options != nil {
		s.opts = *options
	}
	s.random = rand.New(rand.NewPCG(s.opts.Seed, 1))
	if err := s.open(filepath.Join(dir, "books.jsonl")); err != nil {
		return nil, fmt.Errorf("the books: %w", err)
	}
	orders := http.NewServeMux()
	orders.HandleFunc("POST /orders/{promise}", s.post)
	orders.HandleFunc("GET /orders/{promise}/{key}", s.find)
	s.faults = fault.NewHandler(orders)
	s.mux.Handle("/orders/", s.faults)
	s.mux.Handle("/faults/", http.StripPrefix("/faults", s.faults.Control()))
	s.mux.HandleFunc("GET /books", s.books)
	if s.opts.Secret != "" {
		s.mux.HandleFunc("PUT /kill", s.arm)
	}
	return s, nil
}

// open reads the books. A line that a kill has cut short was never answered, but
// its effect is what the lines count: it is dropped.
func (s *Service) open(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	whole := int64(0)
	for in := bufio.NewReader(file); ; {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		var e entry
		if err == nil {
			err = json.Unmarshal(line, &e)
		}
		if err != nil {
			return errors.Join(err, file.Close())
		}
		whole += int64(len(line))
		s.note(e)
	}
	if err := file.Truncate(whole); err != nil {
		return errors.Join(err, file.Close())
	}
	_, err = file.Seek(whole, io.SeekStart)
	s.file = file
	return err
}

// ServeHTTP answers one request.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Close ends what is held, and closes the books.
func (s *Service) Close() error { return errors.Join(s.faults.Close(), s.file.Close()) }

// note takes an effect into the books in memory.
func (s *Service) note(e entry) {
	s.done[e.Order] = append(s.done[e.Order], e)
	s.byKey[string(e.Promise)+" "+e.Key] = e
}

// do has the effect: one line, written before anybody hears of it.
func (s *Service) do(e entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.At, e.Status = time.Now().UTC(), http.StatusCreated
	if e.Promise == Stored && s.random.Float64() < s.opts.StoreErrors {
		e.Status = http.StatusInternalServerError
	}
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if _, err := s.file.Write(append(line, '\n')); err != nil {
		return err
	}
	s.note(e)
	return nil
}

func (s *Service) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	var asked struct{ Order string }
	if err == nil {
		err = json.Unmarshal(body, &asked)
	}
	if err != nil || asked.Order == "" {
		answer(w, http.StatusBadRequest, `{"code":"no_order"}`)
		return
	}
	e := entry{Order: asked.Order, Key: r.Header.Get("Idempotency-Key"), Promise: Promise(r.PathValue("promise"))}
	s.reached("arrived", e.Order)
	if e.Promise.protects() && e.Key != "" {
		if leave := s.enter(w, e); leave != nil {
			defer leave()
		} else {
			return
		}
	}
	time.Sleep(s.opts.Think)
	if err := s.do(e); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s.reached("done", e.Order)
	s.mu.Lock()
	last := s.done[e.Order][len(s.done[e.Order])-1]
	s.mu.Unlock()
	last.tell(w)
}

// enter takes the key, or answers for it and returns nil.
func (s *Service) enter(w http.ResponseWriter, e entry) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := string(e.Promise) + " " + e.Key
	order, working := s.busy[name]
	known, kept := s.byKey[name]
	kept = kept && (s.opts.Keep == 0 || time.Since(known.At) < s.opts.Keep)
	switch {
	case working && order != e.Order, !working && kept && known.Order != e.Order:
		answer(w, http.StatusUnprocessableEntity, `{"code":"mismatch"}`)
	case working:
		answer(w, http.StatusConflict, `{"code":"in_progress"}`)
	case kept:
		w.Header().Set("Idempotency-Replayed", "true")
		known.tell(w)
	default:
		s.busy[name] = e.Order
		return func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.busy, name)
		}
	}
	return nil
}

func (s *Service) find(w http.ResponseWriter, r *http.Request) {
	if Promise(r.PathValue("promise")) != Queryable {
		http.NotFound(w, r)
		return
	}
	s.mu.Lock()
	e, ok := s.byKey[string(Queryable)+" "+r.PathValue("key")]
	s.mu.Unlock()
	if !ok {
		answer(w, http.StatusNotFound, `{"code":"no_such_order"}`)
		return
	}
	answer(w, http.StatusOK, e.body())
}

func (e entry) body() string { return fmt.Sprintf(`{"order":%q,"state":"done"}`, e.Order) }

func (e entry) tell(w http.ResponseWriter) {
	if e.Status != http.StatusCreated {
		answer(w, e.Status, `{"code":"failed"}`)
		return
	}
	answer(w, http.StatusCreated, e.body())
}

func (s *Service) books(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	counts := map[string]Count{}
	for order, n := range s.arrived {
		counts[order] = Count{Arrived: n}
	}
	for order, entries := range s.done {
		c := Count{Arrived: s.arrived[order], Done: len(entries)}
		for _, e := range entries {
			c.Times = append(c.Times, e.At)
		}
		counts[order] = c
	}
	s.mu.Unlock()
	if order := r.URL.Query().Get("order"); order != "" {
		counts = map[string]Count{order: counts[order]}
	}
	var text bytes.Buffer
	if err := json.NewEncoder(&text).Encode(counts); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(text.Bytes())
}

// A kill is the order to kill a process at a point.
type kill struct {
	Order, At string
	PID       int
	Drop      bool
}

// arm takes a process to kill.
func (s *Service) arm(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+s.opts.Secret {
		http.Error(w, "not for you", http.StatusForbidden)
		return
	}
	var k kill
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4096)).Decode(&k); err != nil || k.PID <= 1 || (k.At != "arrived" && k.At != "done") {
		http.Error(w, "want an order, a point and a process", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.kills[k.At+" "+k.Order] = k
	s.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

// reached notes that an order is at a point, and kills whom it may concern.
func (s *Service) reached(at, order string) {
	s.mu.Lock()
	if at == "arrived" {
		s.arrived[order]++
	}
	k := s.kills[at+" "+order]
	delete(s.kills, at+" "+order)
	s.mu.Unlock()
	if k.PID == 0 {
		return
	}
	if p, err := os.FindProcess(k.PID); err == nil {
		p.Kill()
	}
	if k.Drop {
		panic(http.ErrAbortHandler)
	}
}

func answer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	io.WriteString(w, body)
}

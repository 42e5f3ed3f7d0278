package client

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel/contract"
)

func preset(name string) contract.Contract {
	c, err := contract.Preset(name)
	if err != nil {
		panic(err)
	}
	return c
}

// plain is the contract of an API that runs a request once for each key, and can't
// be asked.
func plain() contract.Contract { return preset(contract.Idempotent) }

// shop is an API without a network: what happens to each transmission is said by a
// script. Whatever arrives has an effect, at most once for each key where the
// contract says so, and for as long.
type shop struct {
	contract contract.Contract
	// script says what happens to the n-th transmission (from 1) of an intent.
	script func(n int) fate
	// looked says what happens to the n-th look-up; nil: it is answered.
	looked func(n int) bool
	// shown delays what look-ups show.
	shown time.Duration

	mu      sync.Mutex
	sends   map[string]int
	looks   map[string]int
	effects map[string]int
	since   map[string]time.Time
	bodies  map[string]string
	log     []string
	start   time.Time
}

// fate is what happens to a transmission.
type fate struct {
	arrives bool
	late    time.Duration // it arrives so long after it was sent
	status  int           // of the answer; 0: none
	header  http.Header
	dial    bool // it never had a connection
}

var (
	answered = fate{arrives: true, status: 201}
	lost     = fate{arrives: true}
	vanished = fate{}
	refused  = fate{dial: true}
)

func newShop(c contract.Contract, script ...fate) *shop {
	return &shop{contract: c, sends: map[string]int{}, looks: map[string]int{}, effects: map[string]int{},
		since: map[string]time.Time{}, bodies: map[string]string{}, start: time.Now(),
		script: func(n int) fate { return script[min(n, len(script))-1] }}
}

func (s *shop) api() *API {
	a := HTTP(s.contract, nil)
	a.Name = "shop"
	a.Submit = s.submit
	if s.contract.LookUp.By != "" {
		a.LookUp = s.lookUp
	}
	return a
}

func (s *shop) client(t testing.TB, j Journal, o *Options) *Client {
	t.Helper()
	c, err := New(s.api(), j, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (s *shop) note(what string) {
	s.log = append(s.log, fmt.Sprintf("%s@%s", what, time.Since(s.start).Round(time.Second)))
}

func (s *shop) arrive(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.contract.Retention.Minimum.D()
	if s.effects[id] > 0 && s.contract.Shape().Idempotent && time.Since(s.since[id]) <= kept {
		return
	}
	s.effects[id]++
	if s.since[id].IsZero() {
		s.since[id] = time.Now()
	}
}

// happened tells the effects and the transmissions of an intent, and everything that
// was asked. What arrives late arrives in a goroutine of its own.
func (s *shop) happened(id string) (effects, sends int, log []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.effects[id], s.sends[id], slices.Clone(s.log)
}

func (s *shop) submit(ctx context.Context, in Intent) Sent {
	s.mu.Lock()
	s.sends[in.ID]++
	f := s.script(s.sends[in.ID])
	s.note("send")
	if len(s.log) > 2000 {
		panic("it asks without end: " + strings.Join(s.log[:20], " "))
	}
	if was, ok := s.bodies[in.ID]; ok && was != string(in.Body) {
		panic("other bytes than before")
	}
	s.bodies[in.ID] = string(in.Body)
	s.mu.Unlock()
	switch {
	case f.arrives && f.late > 0:
		time.AfterFunc(f.late, func() { s.arrive(in.ID) })
	case f.arrives:
		s.arrive(in.ID)
	}
	wire := contract.Wire{Going: contract.Begun, Sends: 1}
	var answer *contract.Answer
	switch {
	case f.dial:
		wire = contract.Wire{Going: contract.NotBegun, Failure: contract.FailedDial}
	case f.status == 0:
		wire.Failure = contract.FailedEOF
	default:
		wire.Arrival = contract.ArrivedComplete
		answer = &contract.Answer{Status: f.status, Header: f.header, Body: []byte(`{"order":1}`)}
	}
	request := contract.Request{Method: in.Method, Keyed: s.contract.Carrier.In != "", Replayable: true}
	sent := Sent{Proof: s.contract.Classify(request, wire, answer), Answer: answer}
	if f.header != nil {
		fmt.Sscan(f.header.Get("Retry-After"), &sent.Proof.WaitAtLeast)
		sent.Proof.WaitAtLeast *= time.Second
	}
	if sent.Proof.Proves == contract.Applied {
		sent.Result = answer.Body
	}
	return sent
}

func (s *shop) lookUp(_ context.Context, in Intent) Seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks[in.ID]++
	s.note("look")
	if len(s.log) > 2000 {
		panic("it asks without end: " + strings.Join(s.log[:20], " "))
	}
	switch {
	case s.looked != nil && !s.looked(s.looks[in.ID]):
		return Seen{}
	case s.effects[in.ID] > 0 && time.Since(s.since[in.ID]) >= s.shown:
		return Seen{Found: contract.FoundSucceeded, Result: []byte(`{"order":1}`)}
	}
	return Seen{Found: contract.FoundNothing}
}

// order is an intent for a shop.
func order() Intent {
	return Intent{Kind: "order", URL: "https://shop.example/orders", Body: []byte(`{"dish":"` + secret + `"}`)}
}

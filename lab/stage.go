package lab

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/fault"
	"github.com/semel-dev/semel/httpapi"
	"github.com/semel-dev/semel/internal/node"
	"github.com/semel-dev/semel/lab/internal/child"
	"github.com/semel-dev/semel/lab/internal/stops"
	"github.com/semel-dev/semel/lab/service"
	"github.com/semel-dev/semel/worker"
)

// A stage is what one scenario plays on: processes, a database, an external
// service, and what is left of them is taken away in the end.
type stage struct {
	ctx      context.Context
	dir      string
	database string
	// tag makes the names of this stage its own, since a database may be shared.
	tag     string
	account string
	token   string
	secret  string
	tokens  []accountName
	// unsafe asks for the broken variant; full for the size that takes long.
	unsafe, full bool

	mu     sync.Mutex
	things []io.Closer
}

func newStage(ctx context.Context, dir, store string, unsafe, full bool) *stage {
	tag := strings.ToLower(rand6())
	s := &stage{ctx: ctx, dir: dir, database: store, tag: tag, account: "lab-" + tag, token: httpapi.NewToken(), secret: httpapi.NewToken(),
		unsafe: unsafe, full: full}
	s.tokens = []accountName{{s.account, s.token, true}}
	if s.database == "" || s.database == "sqlite" {
		s.database = filepath.Join(dir, "semel.db")
	}
	return s
}

type closer func()

func (c closer) Close() error { c(); return nil }

// keep takes something away in the end.
func (s *stage) keep(c io.Closer) {
	s.mu.Lock()
	s.things = append(s.things, c)
	s.mu.Unlock()
}

// clear takes everything away, the latest first.
func (s *stage) clear() error {
	s.mu.Lock()
	things := s.things
	s.things = nil
	s.mu.Unlock()
	var errs []error
	for i := len(things) - 1; i >= 0; i-- {
		errs = append(errs, things[i].Close())
	}
	return errors.Join(errs...)
}

// start starts a process that is killed in the end.
func (s *stage) start(role string, setup any, files ...*os.File) (*child.Process, error) {
	p, err := child.Start(s.ctx, []string{role}, setup, files...)
	if err == nil {
		s.keep(closer(p.Kill))
	}
	return p, err
}

// startServing starts a process that serves on a free port, and returns its URL.
func (s *stage) startServing(role string, setup any) (*child.Process, string, error) {
	door, err := child.NewDoor()
	if err != nil {
		return nil, "", err
	}
	defer door.Close()
	p, err := s.start(role, setup, door.File)
	return p, door.URL, err
}

// orders is an external service.
type orders struct {
	stage *stage
	proc  *child.Process
	url   string
}

// orders starts an external service.
func (s *stage) orders(setup serviceSetup) (*orders, error) {
	setup.Secret = s.secret
	setup.Dir = filepath.Join(s.dir, "books-"+rand6())
	if err := os.Mkdir(setup.Dir, 0o700); err != nil {
		return nil, err
	}
	p, url, err := s.startServing("lab-service", setup)
	return &orders{s, p, url}, err
}

// at is where orders are posted under a promise.
func (o *orders) at(p service.Promise) string { return o.url + "/orders/" + string(p) }

func (o *orders) call(method, path, body string, into any) error {
	req, err := http.NewRequestWithContext(o.stage.ctx, method, o.url+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+o.stage.secret)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("external service: %s %s: %s: %s", method, path, resp.Status, text)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}

// kill asks the service to kill a process when an order is at a point, and then to
// drop the order or to go on with it.
func (o *orders) kill(order, at string, p *child.Process, drop bool) error {
	body, err := json.Marshal(map[string]any{"order": order, "at": at, "pid": p.PID(), "drop": drop})
	if err != nil {
		return err
	}
	return o.call(http.MethodPut, "/kill", string(body), nil)
}

// rules sets what goes wrong at the service.
func (o *orders) rules(rules ...string) error {
	return o.call(http.MethodPut, "/faults/rules", strings.Join(rules, "\n"), nil)
}

// books returns what really happened, by order.
func (o *orders) books() (map[string]service.Count, error) {
	var books map[string]service.Count
	err := o.call(http.MethodGet, "/books", "", &books)
	return books, err
}

func (o *orders) count(order string) (service.Count, error) {
	var books map[string]service.Count
	err := o.call(http.MethodGet, "/books?order="+url.QueryEscape(order), "", &books)
	return books[order], err
}

// kind is an order at the service under a promise. Waits are short, so that a
// recovery can be watched, and long enough for a busy machine.
func (s *stage) kind(o *orders, p service.Promise) kindSetup {
	return kindSetup{Name: string(p) + "-" + s.tag, URL: o.at(p), Contract: promised(p), Timeout: 2 * time.Second, Lease: 2500 * time.Millisecond,
		Retry: worker.Retry{Base: 20 * time.Millisecond, Cap: 500 * time.Millisecond, MaxExecutions: 50}}
}

// unhurried gives a call and its lease all the time that a machine may take: nobody
// waits for their end.
func unhurried(k *kindSetup) { k.Timeout, k.Lease = 30*time.Second, time.Minute }

// patient is how long "not found" proves nothing where the service is slow on purpose
// and the machine is busy: a request that is late must have arrived by then.
const patient = 3 * time.Second

// promised is the contract that says what the service promises.
func promised(p service.Promise) contract.Contract {
	name := contract.Idempotent
	switch p {
	case service.Queryable:
		name = contract.Queryable
	case service.Opaque:
		name = contract.Opaque
	}
	c, err := contract.Preset(name)
	if err != nil {
		panic(err) // it is one of ours
	}
	c.Name = string(p)
	switch p {
	case service.Queryable:
		c.LookUp.ConsistentAfter, c.LookUp.AbsentAfter = 0, contract.Duration(500*time.Millisecond)
	case service.Stored:
		c.Stored = contract.Stored{Outcomes: contract.StoresEvery, ServerErrors: contract.ServerErrorReplayed}
	}
	return c
}

// serve starts a server for some kinds, and returns a caller of it.
func (s *stage) serve(kinds ...kindSetup) (*caller, error) {
	_, url, err := s.startServing("lab-node", s.node("server", nodeSetup{Serve: true, Kinds: kinds}))
	return newCaller(url, s.token, nil), err
}

// node completes a node's setup.
func (s *stage) node(name string, n nodeSetup) nodeSetup {
	n.Name, n.Database, n.Tokens = name, s.database, s.tokens
	return n
}

// work starts a worker for some kinds.
func (s *stage) work(kinds ...kindSetup) (*child.Process, error) {
	return s.start("lab-node", s.node("worker", nodeSetup{Work: true, Kinds: kinds}))
}

// victim starts a worker that waits for the word, and ends at a stop.
func (s *stage) victim(at stops.Point, pause bool, kinds ...kindSetup) (*child.Process, error) {
	return s.start("lab-node", s.node("victim", nodeSetup{Work: true, Kinds: kinds, Wait: true, StopAt: at, Pause: pause}))
}

// proxy puts a faulty network before a caller's server, and returns a caller that
// goes through it.
func (s *stage) proxy(c *caller, rules ...string) (*caller, *fault.Proxy, error) {
	target, err := url.Parse(c.base)
	if err != nil {
		return nil, nil, err
	}
	parsed, err := fault.ParseRules(strings.Join(rules, "\n"))
	if err != nil {
		return nil, nil, err
	}
	p, err := fault.NewProxy(target, &fault.ProxyOptions{Rules: parsed})
	if err != nil {
		return nil, nil, err
	}
	s.keep(p)
	base, err := p.Listen("127.0.0.1:0")
	return newCaller(base, c.token, nil), p, err
}

// sends counts the requests of a method that went through a proxy.
func sends(method string, proxies ...*fault.Proxy) int {
	n := 0
	for _, p := range proxies {
		for _, e := range p.Log() {
			if e.Method == method {
				n++
			}
		}
	}
	return n
}

// checkStore opens the database once, so that a wrong name is told early.
func checkStore(ctx context.Context, database string) error {
	store, err := node.OpenStore(ctx, database, "")
	if err != nil {
		return err
	}
	return store.Close()
}

// rand6 is a short random word.
func rand6() string { return rand.Text()[:6] }

// quiet waits until nothing is at work at the service, not even a request whose
// caller has long given up.
func (o *orders) quiet() error {
	for n := -1; ; {
		var log struct{ Progress fault.Progress }
		if err := o.call(http.MethodGet, fmt.Sprintf("/faults/log?since=%d&wait=%d&timeout=60s", math.MaxInt32, max(n, 0)), "", &log); err != nil {
			return err
		}
		if log.Progress.Started == n {
			return nil
		}
		n = log.Progress.Started
	}
}

// remote reports whether the database is a server.
func (s *stage) remote() bool { return strings.Contains(s.database, "://") }

package lab

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/fault"
	"github.com/semel-dev/semel/lab/history"
)

// clientWays are what goes wrong between a client and the nodes.
var clientWays = []string{"lose-answer", "cut-before", "cut-during", "cut-after", "delay for=50ms", "duplicate parallel=true"}

// A soakClient asks, again and again, until it has an answer: careful where it
// counts, and wilful in everything else.
type soakClient struct {
	*soak
	name   string
	random *rand.Rand
	net    *fault.Transport
	base   *http.Transport
	nodes  []*caller
	sends  int
}

func (s *soak) client(i int) *soakClient {
	c := &soakClient{soak: s, name: fmt.Sprintf("client-%d", i), random: rand.New(rand.NewPCG(s.o.Seed, uint64(i)+1))}
	rules, err := fault.ParseRules(strings.Join(chances(clientWays, 0.2, s.o.Seed+1000*uint64(i+1)), "\n"))
	if err != nil {
		panic(err) // they are written here
	}
	c.base = &http.Transport{MaxIdleConnsPerHost: 4}
	c.net = fault.NewTransport(c.base, rules...)
	for _, r := range s.fleet {
		if r.door != nil {
			c.nodes = append(c.nodes, newCaller(r.door.URL, s.stage.token, c.net))
		}
	}
	return c
}

// Close ends what its network still holds.
func (c *soakClient) Close() error {
	err := c.net.Close()
	c.base.CloseIdleConnections()
	return err
}

// run asks for one operation after the other until the time is over. The last one
// is asked for to its end, over a network that works.
func (c *soakClient) run(ctx, asking context.Context) {
	for asking.Err() == nil {
		key, amount := c.choose()
		switch n := c.random.IntN(20); {
		case n == 0: // somebody thinks better of it, before, after or meanwhile
			c.send(ctx, http.MethodDelete, key, 0, 0)
		case n < 3: // impatient: it does not wait for an answer
			c.send(ctx, http.MethodPut, key, amount, 0)
			continue
		case n < 5:
			c.send(ctx, http.MethodGet, key, 0, 0)
		}
		c.ask(ctx, asking, key, amount)
	}
}

// choose takes a new key, or one that somebody has used before, and then now and
// then with another request.
func (c *soakClient) choose() (semel.Key, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	amount := 1
	if n := c.random.IntN(10); n < 2 && len(c.keys) > 0 {
		if n == 0 && c.random.IntN(4) == 0 {
			amount = 2
		}
		return c.keys[max(0, len(c.keys)-1-c.random.IntN(100))], amount
	}
	key := semel.Key{Account: c.stage.account, Kind: c.kinds[c.random.IntN(len(c.kinds))].Name, ID: semel.NewID()}
	c.keys = append(c.keys, key)
	return key, amount
}

// ask sends until there is an answer that says something.
func (c *soakClient) ask(ctx, asking context.Context, key semel.Key, amount int) {
	for ctx.Err() == nil {
		if asking.Err() != nil {
			c.net.SetRules()
		}
		a, err := c.send(ctx, http.MethodPut, key, amount, time.Duration(c.random.IntN(3))*time.Second)
		if err == nil && a.Status != 0 && a.Status < 500 && a.Code != semel.CodeInProgress {
			return
		}
		if pause(ctx, time.Duration(c.random.IntN(50))*time.Millisecond) != nil { // a client's back-off
			return
		}
	}
}

// send sends once, to any node, and takes down what came of it.
func (c *soakClient) send(ctx context.Context, method string, key semel.Key, amount int, wait time.Duration) (answer, error) {
	c.sends++
	e := history.Event{What: history.Sent, At: time.Now().UTC(), By: c.name, Verb: method, Key: key, Attempt: fmt.Sprintf("%s-%d", c.name, c.sends)}
	body := ""
	if method == http.MethodPut {
		e.Content, body = fmt.Sprint(amount), order(key.ID, amount)
	}
	c.rec.Add(e)
	ctx, cancel := context.WithTimeout(ctx, wait+3*time.Second)
	defer cancel()
	node := c.nodes[c.random.IntN(len(c.nodes))]
	a, err := node.do(ctx, method, operationPath(key.Kind, key.ID), body, append(preferWait(wait), "Attempt-Id", e.Attempt)...)
	e.At, e.What = time.Now().UTC(), history.Answered
	if err != nil {
		e.What = history.Silent
	} else {
		e.Operation, e.Code = a.Operation, a.Code
		if a.Operation != nil {
			a.Operation.Params = nil // it would be kept a hundred thousand times
		}
	}
	c.rec.Add(e)
	c.mu.Lock()
	c.count.Sends++
	if err != nil {
		c.count.Unanswered++
	}
	c.mu.Unlock()
	return a, err
}

package lab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/lab/history"
	"github.com/semel-dev/semel/lab/service"
)

// inParallel calls f for 0 to n-1, so many at a time, until one fails.
func inParallel(n, atOnce int, f func(i int) error) error {
	var mu sync.Mutex
	var first error
	next := 0
	var all sync.WaitGroup
	for range min(n, atOnce) {
		all.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				over := first != nil || i >= n
				mu.Unlock()
				if over {
					return
				}
				if err := f(i); err != nil {
					mu.Lock()
					first = errors.Join(first, err)
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	return first
}

// standstill is how long nothing may move before what is left counts as stuck. A
// worker leaves a service that fails alone for up to a minute.
const standstill = 90 * time.Second

// drained waits until no operation of these kinds is pending. It gives up when
// nothing has moved for a while: then something is stuck, and the history says what.
func (c *caller) drained(ctx context.Context, kinds []kindSetup) error {
	mine := map[string]bool{}
	for _, k := range kinds {
		mine[k.Name] = true
	}
	last, moved := int64(-1), time.Now()
	for {
		var stats semel.Stats
		if err := c.json(ctx, "/v1/operator/stats", &stats); err != nil {
			return err
		}
		pending := int64(0)
		for _, k := range stats.Kinds {
			if mine[k.Kind] {
				pending += k.States[semel.Accepted] + k.States[semel.Processing]
			}
		}
		if pending != last {
			last, moved = pending, time.Now()
		}
		if pending == 0 || time.Since(moved) > standstill {
			return nil
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil { // counts of a database: there is no signal
			return err
		}
	}
}

// finals takes down what is on record of every key, and what the books say.
func finals(ctx context.Context, c *caller, rec *history.Recorder, keys []semel.Key, books map[string]service.Count) error {
	for _, key := range keys {
		for _, at := range books[key.ID].Times {
			rec.Add(history.Event{What: history.Effect, At: at, Key: key})
		}
	}
	return inParallel(len(keys), 16, func(i int) error {
		key := keys[i]
		a, err := c.do(ctx, "GET", operationPath(key.Kind, key.ID), "")
		if err != nil {
			return err
		}
		e := history.Event{What: history.Final, Key: key, Code: a.Code}
		if a.Code == "" {
			h, err := c.history(ctx, key.Kind, key.ID)
			if err != nil {
				return err
			}
			e.Operation, e.History = a.Operation, &h
		}
		rec.Add(e)
		return nil
	})
}

// states counts the operations of a history by their last state.
func states(h history.History) map[semel.State]int {
	count := map[semel.State]int{}
	for _, e := range h.Events {
		if e.What == history.Final && e.Operation != nil {
			count[e.Operation.State]++
		}
	}
	return count
}

// chances makes rules of faults, each as likely as the others, which together hit
// a part of the requests.
func chances(faults []string, part float64, seed uint64) []string {
	each := 1 - math.Pow(1-part, 1/float64(len(faults)))
	seeds := rand.New(rand.NewPCG(seed, 2)) // near seeds would hit near requests
	var rules []string
	for _, fault := range faults {
		rules = append(rules, fmt.Sprintf("%s prob=%.4f seed=%d", fault, each, seeds.Uint64()))
	}
	return rules
}

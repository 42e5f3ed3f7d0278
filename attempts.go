package semel

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// attemptLog records attempts behind the caller's back, in batches. It may lose
// some: attempts are a lower bound, and nothing depends on them.
type attemptLog struct {
	store  Store
	logger *slog.Logger
	queue  chan Attempt
	quit   chan struct{}
	done   chan struct{}
	once   sync.Once
}

func newAttemptLog(store Store, logger *slog.Logger) *attemptLog {
	a := &attemptLog{store: store, logger: logger, queue: make(chan Attempt, 4096),
		quit: make(chan struct{}), done: make(chan struct{})}
	go a.loop()
	return a
}

func (a *attemptLog) add(at Attempt) {
	select {
	case a.queue <- at:
	default: // full: lost, as it may be
	}
}

func (a *attemptLog) loop() {
	defer close(a.done)
	for {
		select {
		case first := <-a.queue:
			a.write(a.drain([]Attempt{first}))
		case <-a.quit:
			a.write(a.drain(nil))
			return
		}
	}
}

// drain adds what else is waiting.
func (a *attemptLog) drain(batch []Attempt) []Attempt {
	for len(batch) < 500 {
		select {
		case at := <-a.queue:
			batch = append(batch, at)
		default:
			return batch
		}
	}
	return batch
}

func (a *attemptLog) write(batch []Attempt) {
	if len(batch) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := a.store.RecordAttempts(ctx, batch); err != nil {
		a.logger.Debug("attempts not recorded", "count", len(batch), "code", AsError("attempts", err).Code)
	}
}

func (a *attemptLog) close() {
	a.once.Do(func() { close(a.quit) })
	<-a.done
}

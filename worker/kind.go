package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/effect"
)

// A Kind says how operations of one kind are executed.
type Kind struct {
	// Name is the kind's name in keys.
	Name string
	// Contract is what the external service promises about repeats. It is stored
	// with each execution. The zero Contract is opaque.
	Contract contract.Contract
	// Effect makes the external call. It must be an [effect.Finder] where the
	// contract has a look-up.
	Effect effect.Effect
	// Host names the external service whose limits this kind shares. Defaults to
	// the effect's own ([effect.Hoster]), or else to the kind's name.
	Host string
	// Concurrency is how many operations of this kind run at a time in this
	// process; the outcomes of as many more may be on their way into the record.
	// Defaults to 8.
	Concurrency int
	// Timeout is how long one call or look-up may take. Defaults to 20 s.
	Timeout time.Duration
	// Lease is how long a claim lasts without renewal. Timeout and a tenth of the
	// lease must fit into it. Defaults to 60 s, or three times Timeout if that is
	// more.
	Lease time.Duration
	// Retry says how often and how long. Defaults to what its fields say.
	Retry Retry
}

// Retry is the schedule of one operation.
type Retry struct {
	// MaxExecutions is how often the effect is begun at most. Answers that say "in
	// progress" and work that was handed back do not count. Defaults to 20.
	MaxExecutions int
	// Budget is the time from the first execution to the last. An idempotent
	// contract must keep keys for longer. Defaults to 12 h, or half of the
	// contract's retention if that is less.
	Budget time.Duration
	// Base is the bound of the first wait; it doubles with each one. The wait is a
	// random time between zero and the bound. Defaults to 1 s.
	Base time.Duration
	// Cap is the largest bound. Defaults to 5 min.
	Cap time.Duration
	// LookUpFor is how long an operation is looked up after its last call, counted
	// from the first look-up, before a person is asked. Defaults to the contract's
	// absent_after and consistent_after, and 24 h.
	LookUpFor time.Duration
}

// NewKind returns the kind with its defaults filled in, or everything that is
// wrong with it.
func NewKind(k Kind) (Kind, error) {
	err := k.prepare()
	return k, err
}

// margin is the part of a lease that an effect is not given.
func (k *Kind) margin() time.Duration { return k.Lease / 10 }

// prepare fills in the defaults, and says all that is wrong.
func (k *Kind) prepare() error {
	var problems []error
	complain := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if !semel.ValidName(k.Name) {
		complain("%q is not a kind's name", k.Name)
	}
	if k.Effect == nil {
		complain("the effect is missing")
	}
	if err := k.Contract.Validate(); err != nil {
		problems = append(problems, err)
	}
	if c, ok := k.Effect.(effect.Checker); ok {
		if err := c.Check(k.Contract); err != nil {
			problems = append(problems, err)
		}
	}
	if _, ok := k.Effect.(effect.Finder); k.Contract.LookUp.By != "" && !ok {
		complain("contract %q has a look-up, and the effect can't look up", k.Contract.Name)
	}
	k.setDefaults()
	if k.Timeout+k.margin() >= k.Lease {
		complain("a timeout of %s and a margin of %s do not fit into a lease of %s", k.Timeout, k.margin(), k.Lease)
	}
	if err := k.Contract.CheckBudget(k.Retry.Budget); err != nil {
		problems = append(problems, err)
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("kind %q: %w", k.Name, errors.Join(problems...))
}

func (k *Kind) setDefaults() {
	if k.Host == "" {
		k.Host = k.Name
		if h, ok := k.Effect.(effect.Hoster); ok && h.Host() != "" {
			k.Host = h.Host()
		}
	}
	if k.Concurrency <= 0 {
		k.Concurrency = 8
	}
	if k.Timeout <= 0 {
		k.Timeout = 20 * time.Second
	}
	if k.Lease <= 0 {
		k.Lease = max(time.Minute, 3*k.Timeout)
	}
	r := &k.Retry
	if r.MaxExecutions <= 0 {
		r.MaxExecutions = 20
	}
	if r.Budget <= 0 {
		r.Budget = 12 * time.Hour
		if keeps := k.Contract.Retention; k.Contract.Shape().Idempotent && keeps.After != contract.AfterKeptForEver {
			r.Budget = min(r.Budget, keeps.Minimum.D()/2)
		}
	}
	if r.Base <= 0 {
		r.Base = time.Second
	}
	if r.Cap <= 0 {
		r.Cap = 5 * time.Minute
	}
	if r.LookUpFor <= 0 {
		r.LookUpFor = k.Contract.LookUp.AbsentAfter.D() + k.Contract.LookUp.ConsistentAfter.D() + 24*time.Hour
	}
}

// backoff is a random time between zero and a bound that doubles with n, which
// counts from zero. Random is in [0, 1).
func (r Retry) backoff(n int, random float64) time.Duration {
	bound := r.Cap
	if shifted := r.Base << min(max(n, 0), 40); shifted>>min(max(n, 0), 40) == r.Base && shifted < bound {
		bound = shifted
	}
	return time.Duration(random * float64(bound))
}

// stored is the contract as it is kept with each execution.
func stored(c contract.Contract) string {
	text, _ := json.Marshal(c) // plain data: cannot fail
	return string(text)
}

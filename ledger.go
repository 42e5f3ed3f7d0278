package semel

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Canon turns parameters into what is compared and what is executed. Package
// schema makes one from a JSON Schema. Methods are safe for concurrent use, and
// equal input gives equal output for ever.
type Canon interface {
	// Version names this definition; it is stored with each operation.
	Version() string
	// Definition is enough to build this version again in a later release.
	Definition() []byte
	// AsSent parses strictly and returns the digest of the request as it came.
	AsSent(params []byte) (digest string, err error)
	// Normalize validates, applies defaults and the projection, and returns the
	// parameters to execute and the digest to compare.
	Normalize(params []byte) (normalized []byte, fingerprint string, err error)
	// Differ returns JSON Pointers to the fields in which params differ from
	// stored (normalized) parameters, after defaults and projection; at most 20.
	Differ(stored, params []byte) []string
}

// A Kind is something that can be asked for.
type Kind struct {
	// Name is the kind's name in keys.
	Name string
	// Canon compares and completes parameters. Defaults to comparing the bytes.
	Canon Canon
	// Request builds what goes to the external service, once, from the
	// normalized parameters. Defaults to the parameters themselves.
	Request func(params []byte) ([]byte, error)
	// Retention is how long a settled operation is remembered with its result.
	// Defaults to 30 days.
	Retention time.Duration
	// Description and Contract are for people: GET /v1/kinds shows them.
	Description, Contract string
}

// DefaultRetention is how long settled operations are remembered if the kind
// does not say.
const DefaultRetention = 30 * 24 * time.Hour

// Options configure a [Ledger].
type Options struct {
	// Kinds are the kinds that this ledger accepts. Operations of other kinds can
	// be read, claimed and resolved, but not accepted.
	Kinds []Kind
	// Recompile builds a Canon from an earlier release's definition. Defaults to
	// none: then a request that differs as sent from an operation of an unknown
	// version is a mismatch.
	Recompile func(kind string, definition []byte) (Canon, error)
	// MaxParams is the size limit of parameters in bytes. Defaults to 1 MiB.
	MaxParams int
	// MaxBatch is how many waiting calls share one statement. Defaults to 500.
	MaxBatch int
	// PollInterval is how often watched operations are looked up, besides being
	// told of changes made by this process. Defaults to 250 ms.
	PollInterval time.Duration
	// Limits are the caps per account. Defaults to none.
	Limits *Limits
	// Observe is told what happened, for metrics. It must be quick and safe for
	// concurrent use. Defaults to nothing.
	Observe func(Observation)
	// Logger gets identity, times, states and error codes. Defaults to slog.Default.
	Logger *slog.Logger
}

// An Observation is one thing that happened, for metrics: a name from a short
// fixed list, the kind, and a label such as an outcome or an error code.
type Observation struct{ Name, Kind, Label string }

// A Ledger decides: it lets the store say who created an operation, and moves
// operations by the table of [Transitions]. It is safe for concurrent use. Make
// one per process and store with [New].
type Ledger struct {
	tx       Tx
	store    Store // nil inside a caller's transaction
	opts     Options
	kinds    map[string]*Kind
	versions *versions
	inserts  *group[Insertion, Inserted]
	changes  *group[Change, Applying]
	finds    *group[Key, Found] // nil where each look-up goes by itself
	attempts *attemptLog
	watchers *watchers
	limiter  *limiter
	seen     *seenKeys
}

// New makes a ledger on a store and saves the definitions of its kinds there.
// Call [Ledger.Close] when done; the store stays open.
func New(ctx context.Context, store Store, options *Options) (*Ledger, error) {
	l := &Ledger{tx: store, store: store, kinds: map[string]*Kind{}}
	if options != nil {
		l.opts = *options
	}
	l.opts.setDefaults()
	l.versions = &versions{store: store, recompile: l.opts.Recompile, known: map[string]Canon{}}
	for _, k := range l.opts.Kinds {
		if !ValidName(k.Name) {
			return nil, &Error{Op: "new", Code: CodeInvalid, Msg: fmt.Sprintf("%q is not a kind's name", k.Name)}
		}
		if l.kinds[k.Name] != nil {
			return nil, &Error{Op: "new", Code: CodeInvalid, Msg: fmt.Sprintf("kind %q is there twice", k.Name)}
		}
		if k.Canon == nil {
			k.Canon = rawCanon{}
		}
		if k.Retention <= 0 {
			k.Retention = DefaultRetention
		}
		if err := store.SaveDefinition(ctx, k.Name, k.Canon.Version(), k.Canon.Definition()); err != nil {
			return nil, AsError("new", err)
		}
		l.versions.known[k.Name+"/"+k.Canon.Version()] = k.Canon
		l.kinds[k.Name] = &k
	}
	width := 1
	if w, ok := store.(Wide); ok {
		width = max(1, w.Width())
		l.finds = newGroup(l.opts.MaxBatch, width, store.Get, func(k Key) Key { return k })
		l.finds.light = true
	}
	l.inserts = newGroup(l.opts.MaxBatch, width, store.Insert, func(i Insertion) Key { return i.Key })
	l.changes = newGroup(l.opts.MaxBatch, width, store.Apply, func(c Change) Key { return c.Key })
	l.attempts = newAttemptLog(store, l.opts.Logger)
	l.watchers = newWatchers(store, l.opts.PollInterval)
	l.limiter = newLimiter(l.opts.Limits, store)
	l.seen = newSeenKeys(1 << 14)
	return l, nil
}

func (o *Options) setDefaults() {
	if o.MaxParams <= 0 {
		o.MaxParams = 1 << 20
	}
	if o.MaxBatch <= 0 {
		o.MaxBatch = 500
	}
	if o.PollInterval <= 0 {
		o.PollInterval = 250 * time.Millisecond
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Observe == nil {
		o.Observe = func(Observation) {}
	}
}

// Close stops what runs in the background, after writing the attempts that are
// still in memory. It does not close the store.
func (l *Ledger) Close() error {
	l.attempts.close()
	l.watchers.close()
	return nil
}

// In returns a ledger that works inside a transaction of the caller's: what
// [Ledger.Accept], [Ledger.Begin], [Ledger.Finish] and [Ledger.Abandon] write
// there commits or rolls back with it. Calls go one by one, as a transaction
// has one connection. Every other method answers as outside.
func (l *Ledger) In(tx Tx) *Ledger {
	inside := *l
	inside.tx, inside.inserts, inside.changes, inside.finds = tx, nil, nil, nil
	return &inside
}

// Kind returns the kind of that name, or [CodeUnknownKind].
func (l *Ledger) Kind(name string) (Kind, error) {
	k := l.kinds[name]
	if k == nil {
		return Kind{}, &Error{Op: "kind", Code: CodeUnknownKind, Msg: "there is no kind of that name here",
			Hint: "ask the operator of this server which kinds it has"}
	}
	return *k, nil
}

// Kinds returns the kinds, by name.
func (l *Ledger) Kinds() []Kind {
	all := make([]Kind, 0, len(l.kinds))
	for _, k := range l.kinds {
		all = append(all, *k)
	}
	slices.SortFunc(all, func(a, b Kind) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Observe tells whoever observes this ledger (see [Options]) of something that
// happened beside it, such as a replay that needed no read.
func (l *Ledger) Observe(o Observation) { l.opts.Observe(o) }

// Ping reports whether the store can be read.
func (l *Ledger) Ping(ctx context.Context) error { return l.store.Ping(ctx) }

func (l *Ledger) retention(kind string) time.Duration {
	if k := l.kinds[kind]; k != nil {
		return k.Retention
	}
	return DefaultRetention
}

func (l *Ledger) insert(ctx context.Context, in Insertion) (Inserted, error) {
	var out Inserted
	var err error
	if l.inserts != nil {
		out, err = l.inserts.do(ctx, in)
	} else {
		out, err = one(l.tx.Insert(ctx, []Insertion{in}))
	}
	if err == nil {
		err = out.Err
	}
	return out, err
}

func (l *Ledger) apply(ctx context.Context, c Change) (Applying, error) {
	var out Applying
	var err error
	if l.changes != nil {
		out, err = l.changes.do(ctx, c)
	} else {
		out, err = one(l.tx.Apply(ctx, []Change{c}))
	}
	if err == nil {
		err = out.Err
	}
	if err == nil && out.Applied && l.changes != nil {
		l.watchers.tell(out.Operation)
	}
	return out, err
}

func (l *Ledger) find(ctx context.Context, key Key) (Found, error) {
	if l.finds != nil {
		return l.finds.do(ctx, key)
	}
	return one(l.tx.Get(ctx, []Key{key}))
}

func one[T any](all []T, err error) (T, error) {
	if err != nil || len(all) == 0 {
		var zero T
		return zero, err
	}
	return all[0], nil
}

func newOwner() string { return rand.Text() }

func isContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// versions finds the Canon of any version, past ones from the store.
type versions struct {
	store     Store
	recompile func(string, []byte) (Canon, error)
	mu        sync.Mutex
	known     map[string]Canon
}

// get returns nil if that version can't be had.
func (v *versions) get(ctx context.Context, kind, version string) (Canon, error) {
	v.mu.Lock()
	canon := v.known[kind+"/"+version]
	v.mu.Unlock()
	if canon != nil || v.recompile == nil {
		return canon, nil
	}
	definition, err := v.store.Definition(ctx, kind, version)
	if err != nil || definition == nil {
		return nil, err
	}
	canon, err = v.recompile(kind, definition)
	if err != nil {
		return nil, &Error{Op: "definition", Code: CodeInternal, Msg: "the stored definition of kind " + kind + " can't be read", Err: err}
	}
	v.mu.Lock()
	v.known[kind+"/"+version] = canon
	v.mu.Unlock()
	return canon, nil
}

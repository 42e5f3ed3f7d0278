// Package postgres keeps a ledger in PostgreSQL: for many nodes, and for services
// whose business rows are there already.
//
//	store, err := postgres.Open(ctx, "postgres://…", nil)
//	if err != nil { … }
//	defer store.Close()
//	ledger, err := semel.New(ctx, store, &semel.Options{Kinds: kinds})
//
// # What it promises
//
// [Store] implements [semel.Store]. Nodes hold no state: any number of them may
// share the database. Each call of Insert or Apply is one transaction, and one
// round trip, whatever the size of its batch; a [semel.Ledger] makes the batches.
// A look-up is one read by primary key and writes nothing.
//
// If the answer of a COMMIT is lost, the batch is written again under another
// owner mark before anybody is told anything: the second try waits for whatever
// the first one left running, finds what it wrote, and writes what it did not.
// Only when the database can't be reached at all does a caller read Recorded
// "unknown".
//
// # In your own transaction
//
// The tables may lie beside your own: their names all begin with "semel_". Begin
// a transaction, give it to [Tx], and let the ledger work in it ([semel.Ledger.In]),
// as the examples of [Tx] do. With [Begin] in place of pool.Begin the ledger takes
// no round trip of its own, where an operation begins in the transaction and ends
// there.
//
// Both rows are there after the commit, or none. An execution whose effect is a
// write to this database can be finished the same way: then it is never unknown
// whether the effect happened. READ COMMITTED, PostgreSQL's default, is the level
// to use. Under a higher one a lost race can't be answered from the winner's row:
// it is [semel.CodeRetryTransaction]. Calls in a transaction notify nobody; the
// next poll finds the work.
//
// # The clock
//
// Time is the database's, taken inside the statement. What the clock of a node
// says matters to nothing that is stored. Tests may set Options.Clock.
//
// # Claims
//
// A claim reads, without a lock, the oldest due work of the accounts whose turn
// it is, and then takes it by compare-and-set on the fencing token. Each account
// with due work has a lane of its own, so its cost depends on how much is claimed,
// not on what is waiting, and no account starves another.
//
// # The schema
//
// [Open] creates the tables and brings older ones up to date, one node at a time;
// the migrations are in the folder migrations, and `semel migrate` runs them
// alone. A database of a newer release is refused. Schema and statements keep to
// what Postgres-compatible distributed engines have too: text, bigint and bytea,
// natural keys with the shard first, and no sequences, triggers, foreign keys,
// savepoints or advisory locks. What PostgreSQL does better is optional: the
// storage parameters in tuning.sql, SKIP LOCKED (Options.NoSkipLocked),
// LISTEN/NOTIFY (Options.NoNotify), and the advisory locks of [Begin]
// (Options.NoAdvisoryLocks).
package postgres

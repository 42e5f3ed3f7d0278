// Package sqlite keeps a ledger in one SQLite file: the store to begin with, and
// enough for one machine.
//
//	store, err := sqlite.Open(ctx, "semel.db", nil)
//	if err != nil { … }
//	defer store.Close()
//	ledger, err := semel.New(ctx, store, &semel.Options{Kinds: kinds})
//
// # What it promises
//
// [Store] implements [semel.Store]. What was acknowledged is on the disk: the
// file is in WAL mode with synchronous=FULL, so an acknowledged write survives
// kill -9 and, if the disk keeps its word, a power loss. Several processes of one
// machine may open the same file; a network file system will not do. The file is
// made with mode 0600.
//
// SQLite has one writer at a time. Each call of Insert, Apply, Claim, Renew or
// RecordAttempts is one transaction, whatever the size of its batch, so the cost
// of the commit is shared; a [semel.Ledger] makes the batches. Readers never wait
// for the writer. Whoever waits for the writer longer than Options.LockTimeout
// gets [semel.CodeUnavailable] with nothing recorded: a lock on the file says
// nothing of keys, so this store cannot tell a rival of the same key from any
// other writer.
//
// SQLite's lock is not fair, so writers take turns by a lock on a file beside the
// database (its name ends in "-turn"): a busy process does not keep the others
// waiting.
//
// # In your own transaction
//
// The tables may lie in the same file as your own: their names all begin with
// "semel_". Open your database with [OpenDB], which sets what is needed, begin a
// transaction, and give it to [Tx]:
//
//	tx, err := db.BeginTx(ctx, nil)
//	ledger.In(sqlite.Tx(store, tx)).Accept(ctx, request)
//	tx.Exec("INSERT INTO menu …")
//	tx.Commit()
//
// Both rows are there after the commit, or none. An execution whose effect is a
// write to this database can be finished the same way: then it is never unknown
// whether the effect happened. While such a transaction is open, every other
// writer of the file waits, so call nothing outside from it.
//
// # The clock
//
// Time is that of the host, read once for each call inside the transaction, at
// the resolution of one millisecond. Tests may set Options.Clock.
//
// # The schema
//
// [Open] creates the tables and brings older ones up to date, one process at a
// time; the migrations are in the folder migrations. A file of a newer release is
// refused.
package sqlite

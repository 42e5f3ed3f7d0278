package client

import "go.etcd.io/bbolt"

// freePages returns the pages that the transaction does not use.
func freePages(tx *bbolt.Tx) map[int]bool {
	free := map[int]bool{}
	for id := 0; ; id++ {
		page, err := tx.Page(id)
		if err != nil || page == nil {
			return free
		}
		if page.Type == "free" {
			free[id] = true
		}
	}
}

// wipe overwrites with zeros the pages that are free now and were not before. bbolt
// writes changed pages elsewhere and leaves the old ones as they are, so without
// this a body would stay readable in the file after it was erased.
//
// This is safe as far as bbolt's own reuse of free pages is: the last commit is on
// disk and does not need them, the file is locked, and nobody else has a
// transaction open.
func wipe(db openDB, before map[int]bool) error {
	tx, err := db.Begin(true)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	size := db.Info().PageSize
	zeros := make([]byte, size)
	for id := range freePages(tx) {
		if before[id] {
			continue
		}
		if _, err := db.file.WriteAt(zeros, int64(id)*int64(size)); err != nil {
			return err
		}
	}
	return nil
}

package generator

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// record is what is kept of one execution, in a file beside its picture.
type record struct {
	ImageID   string    `json:"image_id"`
	Key       string    `json:"key,omitempty"`
	Menu      string    `json:"menu"` // digest of the menu, to tell a mismatch
	Width     int       `json:"width"`
	Height    int       `json:"height"`
	SHA256    string    `json:"sha256"` // of the picture
	CreatedAt time.Time `json:"created_at"`
}

// store keeps pictures and records in a directory. Its index is in memory, read
// once when it is opened. Safe for concurrent use.
//
// A picture is written before its record, each to a temporary file that is
// synced and then renamed, and the directory is synced after each rename. So a
// record always has its picture; a picture without a record is of an execution
// that a crash interrupted, and is removed.
type store struct {
	dir  string
	lock *os.File

	mu    sync.RWMutex
	byID  map[string]*record
	byKey map[string][]*record // oldest first
}

const tempPrefix = "tmp-"

// openStore reads dir, which is made where missing, and locks it until close.
func openStore(dir string) (*store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	s := &store{dir: dir, lock: lock, byID: map[string]*record{}, byKey: map[string][]*record{}}
	if err := s.load(); err != nil {
		lock.Close()
		return nil, err
	}
	return s, nil
}

func (s *store) load() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	var records []*record
	pictures := map[string]bool{}
	for _, e := range entries {
		name := e.Name()
		switch id, ext, _ := strings.Cut(name, "."); {
		case strings.HasPrefix(name, tempPrefix):
			if err := os.Remove(filepath.Join(s.dir, name)); err != nil {
				return err
			}
		case ext == "png":
			pictures[id] = true
		case ext == "json":
			rec, err := readRecord(filepath.Join(s.dir, name))
			if err != nil {
				return err
			}
			records = append(records, rec)
		}
	}
	slices.SortFunc(records, func(a, b *record) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ImageID, b.ImageID))
	})
	for _, rec := range records {
		if !pictures[rec.ImageID] {
			return fmt.Errorf("the picture of record %s is missing", rec.ImageID)
		}
		delete(pictures, rec.ImageID)
		s.add(rec)
	}
	for id := range pictures {
		if err := os.Remove(s.picturePath(id)); err != nil {
			return err
		}
	}
	return nil
}

func readRecord(path string) (*record, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	rec := &record{}
	if err := json.Unmarshal(data, rec); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if rec.ImageID+".json" != filepath.Base(path) {
		return nil, fmt.Errorf("%s is the record of another image", path)
	}
	return rec, nil
}

func (s *store) close() error { return s.lock.Close() }

func (s *store) picturePath(id string) string { return filepath.Join(s.dir, id+".png") }

func (s *store) add(rec *record) {
	s.byID[rec.ImageID] = rec
	if rec.Key != "" {
		s.byKey[rec.Key] = append(s.byKey[rec.Key], rec)
	}
}

// save makes an execution durable and gives it an ID that can't be guessed. After
// an error nothing was counted; whether the record outlives a crash is unknown.
func (s *store) save(rec *record, picture []byte) error {
	rec.ImageID = strings.ToLower(rand.Text())
	sum := sha256.Sum256(picture)
	rec.SHA256 = hex.EncodeToString(sum[:])
	data, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	if err := writeFile(s.dir, rec.ImageID+".png", picture); err != nil {
		return err
	}
	if err := writeFile(s.dir, rec.ImageID+".json", append(data, '\n')); err != nil {
		os.Remove(filepath.Join(s.dir, rec.ImageID+".json"))
		os.Remove(s.picturePath(rec.ImageID))
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(rec)
	return nil
}

// get returns the record of an image, or nil.
func (s *store) get(id string) *record {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byID[id]
}

// find returns the records of a key that were made after a time, oldest first.
func (s *store) find(key string, after time.Time) []*record {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var recs []*record
	for _, rec := range s.byKey[key] {
		if rec.CreatedAt.After(after) {
			recs = append(recs, rec)
		}
	}
	return recs
}

// count returns how many executions there have been.
func (s *store) count() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.byID)
}

// writeFile puts a whole file in place, durably, or nothing.
func writeFile(dir, name string, data []byte) (err error) {
	f, err := os.CreateTemp(dir, tempPrefix+"*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), filepath.Join(dir, name)); err != nil {
		return err
	}
	return syncDir(dir)
}

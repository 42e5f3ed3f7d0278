package postgres

import (
	"sync"
	"time"

	"github.com/semel-dev/semel"
)

// blockedKeys are keys that somebody's open transaction held when they were last
// asked for. They go alone, so that they do not hold up a batch again. It is a
// guess that saves time; nothing depends on it.
type blockedKeys struct {
	mu   sync.Mutex
	keys map[semel.Key]struct{}
}

// blockedFor is how long a key is remembered.
const blockedFor = 5 * time.Second

func (b *blockedKeys) has(key semel.Key) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.keys[key]
	return ok
}

func (b *blockedKeys) add(key semel.Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.keys == nil {
		b.keys = map[semel.Key]struct{}{}
	}
	if _, ok := b.keys[key]; !ok && len(b.keys) < 10000 {
		b.keys[key] = struct{}{}
		time.AfterFunc(blockedFor, func() { b.remove(key) })
	}
}

func (b *blockedKeys) remove(key semel.Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.keys, key)
}

package semel

import "sync"

// seenKeys remembers keys that this process has met lately, so that their
// repeats are read first. It is a guess that saves work; nothing depends on it.
type seenKeys struct {
	mu       sync.Mutex
	max      int
	new, old map[Key]struct{}
}

func newSeenKeys(max int) *seenKeys {
	return &seenKeys{max: max, new: map[Key]struct{}{}, old: map[Key]struct{}{}}
}

func (s *seenKeys) has(k Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.new[k]; ok {
		return true
	}
	_, ok := s.old[k]
	return ok
}

// add keeps two generations: when the young one is full, the old one goes.
func (s *seenKeys) add(k Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.new) >= s.max {
		s.old, s.new = s.new, make(map[Key]struct{}, s.max)
	}
	s.new[k] = struct{}{}
}

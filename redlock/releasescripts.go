package redlock

import "sync"

// releaseScripts remembers which script texts only delete, because reading a
// text takes longer than the rest of a run's own work.
type releaseScripts struct {
	mu    sync.RWMutex
	known map[string]bool
}

// maxKnownScripts bounds what is remembered; applications have a few scripts.
const maxKnownScripts = 1024

func (s *releaseScripts) knows(text []byte) bool {
	s.mu.RLock()
	deletes, known := s.known[string(text)]
	s.mu.RUnlock()
	if known {
		return deletes
	}
	deletes = onlyDeletes(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= maxKnownScripts || s.known == nil {
		s.known = map[string]bool{}
	}
	s.known[string(text)] = deletes
	return deletes
}

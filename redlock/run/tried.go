package run

import (
	"sync"

	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/effect"
)

// tried remembers what the tries of one run deleted. A split run is tried again, up to
// seconds later. Meanwhile its client's lock may end, and another client may take it. So
// after a try has deleted a lock, the run goes to a master only behind a guard. The guard
// passes if the master has what the last try left there. It does not pass if the copy has
// gone: a run that deletes nothing then is not won anyway (outcome). Keys of which no try
// deleted a lock are not guarded, because others may queue under them meanwhile.
type tried struct {
	mu      sync.Mutex
	deleted []bool                 // by key: a try deleted a lock there
	left    map[int][]effect.Image // by master, and by key
}

// note adds what a try did on a master, and what is left there once the try is undone.
func (t *tried) note(master int, x effect.Result, left []effect.Image) {
	if len(left) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left == nil {
		t.deleted, t.left = make([]bool, len(left)), map[int][]effect.Image{}
	}
	t.left[master] = left
	for k, did := range x.Changes() {
		if did == effect.Deleted && x.Before[k].MayBeLock() {
			t.deleted[k] = true
		}
	}
}

// guarded returns the keys that a guard is about, and what the last try left there. Nobody
// knows what a master had that did not answer, so it must not have them.
func (t *tried) guarded(master int, keys [][]byte) (locks [][]byte, left []effect.Image) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, deleted := range t.deleted {
		if !deleted {
			continue
		}
		image := effect.Missing
		if images := t.left[master]; images != nil {
			image = images[k]
		}
		locks, left = append(locks, keys[k]), append(left, image)
	}
	return locks, left
}

// guardAgain returns what precedes the next try. It is nil if no try has deleted a lock.
func (r *Request) guardAgain() *ballot.Guard[effect.Result] {
	if locks, _ := r.tried.guarded(0, r.Keys); locks == nil {
		return nil
	}
	return r.guardOf(1, func(master int) []byte {
		locks, left := r.tried.guarded(master, r.Keys)
		return effect.AppendGuard(appendWatch(nil, locks), locks, left)
	})
}

package holds

import (
	"sync"
	"time"
)

// ways is how many entries compete for a place in the table.
const ways = 4

// entry is a hold or a wait. Its times are from the beginning of Times.
type entry struct{ since, last time.Duration }

// A table maps hashes to entries. It never grows.
type table struct {
	mu   sync.Mutex
	sets [][ways]struct {
		hash uint64 // 0: free
		entry
	}
}

func newTable(most int) table {
	return table{sets: make([][ways]struct {
		hash uint64
		entry
	}, most/ways)}
}

// put sets the entry of a hash. If there is no room, the entry that was used longest ago goes.
func (t *table) put(hash uint64, e entry) {
	hash = max(hash, 1)
	t.mu.Lock()
	defer t.mu.Unlock()
	set := &t.sets[hash%uint64(len(t.sets))]
	at := 0
	for i := range set {
		if set[i].hash == hash {
			at = i
			break
		}
		if free := set[i].hash == 0; free && set[at].hash != 0 || !free && set[at].hash != 0 && set[i].last < set[at].last {
			at = i
		}
	}
	set[at].hash, set[at].entry = hash, e
}

// take removes the entry of a hash and returns it.
func (t *table) take(hash uint64) (e entry, ok bool) {
	hash = max(hash, 1)
	t.mu.Lock()
	defer t.mu.Unlock()
	set := &t.sets[hash%uint64(len(t.sets))]
	for i := range set {
		if set[i].hash == hash {
			set[i].hash = 0
			return set[i].entry, true
		}
	}
	return entry{}, false
}

package redlock

import (
	"math/bits"
	"sync"
	"time"

	"redlock-proxy/redlock/quorum"
)

// masterSet has a bit for each master, by its number.
type masterSet uint64

// mostMasters is how many a masterSet can tell apart.
const mostMasters = 64

func (m masterSet) has(i int) bool { return m&(1<<i) != 0 }

func (m masterSet) size() int { return bits.OnesCount64(uint64(m)) }

// owedAnswers knows which masters owe an answer to a question that may create a
// lock. Until it is settled, no other such question on its keys goes there, so
// that an undo which waits for the answer cannot meet a later lock.
type owedAnswers struct {
	mu      sync.Mutex
	by      map[lockKey]masterSet
	settled chan struct{} // closed when an answer has come; nil: nobody waits
}

// An owing is what masters owe to one question.
type owing struct {
	db      int
	keys    []string
	masters masterSet // what owedAnswers guards
}

func newOwedAnswers() *owedAnswers { return &owedAnswers{by: map[lockKey]masterSet{}} }

// claim has those of the masters owe an answer that owe none about the keys yet:
// these are the ones that may be asked.
func (o *owedAnswers) claim(db int, keys []string, masters masterSet) owing {
	o.mu.Lock()
	defer o.mu.Unlock()
	free := masters &^ o.about(db, keys)
	for _, k := range keys {
		if free != 0 {
			o.by[lockKey{db, k}] |= free
		}
	}
	return owing{db, keys, free}
}

// about tells, with mu held, who owes an answer about one of the keys.
func (o *owedAnswers) about(db int, keys []string) (masters masterSet) {
	for _, k := range keys {
		masters |= o.by[lockKey{db, k}]
	}
	return masters
}

// settle says that the masters owe w's question nothing any more. It follows the
// undo of what they granted, if there is one.
func (o *owedAnswers) settle(w *owing, masters masterSet) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if masters &= w.masters; masters == 0 {
		return
	}
	w.masters &^= masters
	for _, key := range w.keys {
		k := lockKey{w.db, key}
		if left := o.by[k] &^ masters; left != 0 {
			o.by[k] = left
		} else {
			delete(o.by, k)
		}
	}
	if o.settled != nil {
		close(o.settled)
		o.settled = nil
	}
}

// await returns when a quorum can be asked about the keys, when waiting would
// not help, or when a ballot's time is over. Without it a client that tries again
// at once after QUORUMLOST finds the masters still answering its last question, and
// gets QUORUMLOST although all is well.
func (o *owedAnswers) await(l *Locker, db int, keys []string) {
	owing, settled := o.now(db, keys)
	if !l.shouldWait(db, owing) {
		return
	}
	over := time.NewTimer(l.settings().MasterTimeout)
	defer over.Stop()
	for l.shouldWait(db, owing) {
		select {
		case <-settled:
			owing, settled = o.now(db, keys)
		case <-over.C:
			return
		}
	}
}

// now tells who owes an answer about one of the keys, and returns what is closed
// when that may have changed.
func (o *owedAnswers) now(db int, keys []string) (owing masterSet, settled <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if owing = o.about(db, keys); owing != 0 && o.settled == nil {
		o.settled = make(chan struct{})
	}
	return owing, o.settled
}

// shouldWait: too few masters can be asked without those that owe an answer now,
// but enough with them.
func (l *Locker) shouldWait(db int, owing masterSet) bool {
	if owing == 0 {
		return false
	}
	now := time.Now()
	free, waited := 0, 0
	for i, m := range l.masters {
		switch {
		case !m.stream(db).Serves(now):
		case owing.has(i):
			waited++
		default:
			free++
		}
	}
	need := quorum.Size(len(l.masters))
	return free < need && free+waited >= need
}

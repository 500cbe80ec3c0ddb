package redlock

import (
	"slices"
	"sync/atomic"
	"time"
)

// owing marks the keys under which a question may create a lock on a master.
// Until it is settled, no other such question on those keys goes there, so
// that an undo which waits for the answer cannot meet a later lock.
type owing struct {
	owed    *owedAnswers
	stream  *stream
	keys    []string
	settled bool
}

func (o *owing) settle() {
	defer o.owed.tell()
	o.stream.mu.Lock()
	defer o.stream.mu.Unlock()
	if o.settled {
		return
	}
	o.settled = true
	for _, k := range o.keys {
		if o.stream.owed[k]--; o.stream.owed[k] == 0 {
			delete(o.stream.owed, k)
		}
	}
}

// owedAnswers lets a question wait for masters that can be asked in a moment.
// Without it a client that tries again at once after NOQUORUM finds the masters
// still answering its last question, and gets NOQUORUM although all is well.
type owedAnswers struct {
	settled atomic.Pointer[chan struct{}] // closed when an answer has come; nil: nobody waits
}

// await returns when a quorum can be asked about the keys, when waiting would
// not help, or when a ballot's time is over.
func (o *owedAnswers) await(l *Locker, db int, keys []string) {
	if !l.owedTooMuch(db, keys) {
		return
	}
	over := time.NewTimer(l.settings().MasterTimeout)
	defer over.Stop()
	for {
		settled := o.next()
		if !l.owedTooMuch(db, keys) { // once more, for what came before next
			return
		}
		select {
		case <-settled:
		case <-over.C:
			return
		}
	}
}

func (o *owedAnswers) next() <-chan struct{} {
	for {
		if settled := o.settled.Load(); settled != nil {
			return *settled
		}
		settled := make(chan struct{})
		if o.settled.CompareAndSwap(nil, &settled) {
			return settled
		}
	}
}

// tell wakes who waits. It follows what it tells of.
func (o *owedAnswers) tell() {
	if o.settled.Load() == nil {
		return
	}
	if settled := o.settled.Swap(nil); settled != nil {
		close(*settled)
	}
}

// owedTooMuch: too few masters can be asked about the keys now, but enough if
// those that owe an answer are waited for.
func (l *Locker) owedTooMuch(db int, keys []string) bool {
	now := time.Now()
	free, owing := 0, 0
	for _, m := range l.masters {
		s := m.stream(db)
		s.mu.Lock()
		switch {
		case !s.accepts() || s.suspended(now):
		case s.owes(keys):
			owing++
		default:
			free++
		}
		s.mu.Unlock()
	}
	need := quorum(len(l.masters))
	return free < need && free+owing >= need
}

// owes tells, with s.mu held, whether an answer about one of the keys is missing.
func (s *stream) owes(keys []string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { return s.owed[k] > 0 })
}

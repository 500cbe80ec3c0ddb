package lane

import (
	"time"

	"redlock-proxy/redlock/loop"
	"redlock-proxy/redlock/quorum"
)

// A Question is one question to masters about keys.
type Question struct {
	DB      int
	Keys    []string
	Creates bool // it may create or extend a lock under them

	outstanding quorum.Set // the masters that owe it an answer; guarded by its keys' shards
}

// Send calls put with those of the masters that may be asked, and put queues the
// question to them. A master that owes an answer about one of the keys is not asked for
// a lock. Send holds the shards of the keys, so no other question about them is sent
// meanwhile. put must not wait.
func (l *Lanes[A]) Send(q *Question, masters quorum.Set, put func(free quorum.Set)) {
	held := l.lock(q.DB, q.Keys)
	defer l.unlock(held)
	if q.Creates {
		// rule: a master that owes a vote on a key is not asked for it again
		masters &^= l.outstanding(q)
		l.claim(q, masters)
	}
	// rule: ballots on a key are queued in one order everywhere
	put(masters)
}

// claim notes that masters owe q an answer. The caller holds the shards.
func (l *Lanes[A]) claim(q *Question, masters quorum.Set) {
	q.outstanding = masters
	for _, key := range q.Keys {
		_, created := l.locate(Key{q.DB, key})
		*created++
	}
	l.each(q.DB, q.Keys, func(ln *lane[A]) {
		ln.outstanding |= masters
		for _, w := range ln.line {
			w.asked = true
		}
	})
}

// outstanding returns the masters that owe an answer about one of the keys. The caller
// holds the shards.
func (l *Lanes[A]) outstanding(q *Question) (masters quorum.Set) {
	l.each(q.DB, q.Keys, func(ln *lane[A]) { masters |= ln.outstanding })
	return masters
}

// Settle notes that masters owe q nothing any more: their answers have come, or do not
// matter. If a grant of theirs must be undone, the caller queues the undo first.
func (l *Lanes[A]) Settle(q *Question, masters quorum.Set) {
	if !q.Creates || len(q.Keys) == 0 { // without keys no shard guards q, and nobody waits for it
		return
	}
	held := l.lock(q.DB, q.Keys)
	defer l.unlock(held)
	if masters &= q.outstanding; masters == 0 {
		return
	}
	q.outstanding &^= masters
	l.each(q.DB, q.Keys, func(ln *lane[A]) {
		ln.outstanding &^= masters
		select {
		case ln.settled <- struct{}{}:
		default:
		}
	})
}

// AwaitFree waits for masters that owe an answer about the question's keys. It returns
// when isWorthwhile says no, or after patience. The caller has the turn. Without this
// wait a client that tries again at once after QUORUMLOST would find the masters still
// answering its last question. It would get QUORUMLOST again although all is well.
func (l *Lanes[A]) AwaitFree(q *Question, patience time.Duration, isWorthwhile func(outstanding quorum.Set) bool) {
	if !q.Creates || !isWorthwhile(l.watch(q, nil)) {
		return
	}
	settled := make(chan struct{}, 1)
	over := time.Now().Add(patience)
	for isWorthwhile(l.watch(q, settled)) && l.loop.Wait(time.Until(over), settled) != loop.Late {
	}
}

// watch returns the masters that owe an answer about the keys. From then on settled
// receives after each change.
func (l *Lanes[A]) watch(q *Question, settled chan<- struct{}) quorum.Set {
	held := l.lock(q.DB, q.Keys)
	defer l.unlock(held)
	l.each(q.DB, q.Keys, func(ln *lane[A]) { ln.settled = settled })
	return l.outstanding(q)
}

// Creations counts the questions about a key that may have created a lock. Keys share
// counters. If the count is the same as before, there certainly was no such question. If
// it differs, there may have been one about another key.
func (l *Lanes[A]) Creations(db int, key string) uint32 {
	shard, created := l.locate(Key{db, key})
	l.shards[shard].Lock()
	defer l.shards[shard].Unlock()
	return *created
}

// Outstanding returns the masters that owe an answer about a key.
func (l *Lanes[A]) Outstanding(db int, key string) (masters quorum.Set) {
	l.with(db, []string{key}, func(ln *lane[A]) { masters = ln.outstanding })
	return masters
}

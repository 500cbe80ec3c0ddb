package ballot

import (
	"time"

	"redlock-proxy/redlock/quorum"
)

// settle notes that masters which have answered owe nothing any more. If their grants
// must be undone, the request queues that while it still has its turn. After a ballot
// that stays won no master owes anything, because late grants are part of the lock and
// are not undone.
func (b *Ballot[A]) settle() {
	settled := b.masters.All()
	if b.Verdict != Won {
		for i, a := range b.Answers {
			if a.State == quorum.Awaited {
				settled &^= 1 << i
			}
		}
	}
	b.box.Lanes.Settle(&b.lane, settled)
}

// expire closes the ballot at its deadline.
func (b *Ballot[A]) expire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Verdict == Pending {
		b.close(time.Now())
	}
}

// close decides the ballot without the missing answers. The caller holds mu. In Answers
// these stay Awaited, because a late answer may still come.
func (b *Ballot[A]) close(now time.Time) {
	b.expired = true
	final := make([]quorum.Answer[A], len(b.Answers))
	copy(final, b.Answers)
	for i := range final {
		if final[i].State == quorum.Awaited {
			final[i].State = quorum.Unknown
		}
	}
	if b.Verdict = b.decide(final, now); b.Verdict == Pending {
		panic("redlock: Decide returned Pending although no answer is missing")
	}
	b.tellOver()
}

// tellOver tells the asker that the ballot is closed. The caller holds mu.
func (b *Ballot[A]) tellOver() {
	b.over <- closed
	b.Task.Unpark()
}

// confirm settles a ballot that was won and stays won. Late gets the answers that waited
// for that.
func (b *Ballot[A]) confirm() {
	defer b.settle()
	for _, l := range b.takeLatecomers() {
		if b.Late != nil {
			b.Late.CameLate(b, l.master, l.answer, Won)
		}
	}
}

// takeLatecomers returns the late answers that waited. From now on none waits.
func (b *Ballot[A]) takeLatecomers() []latecomer[A] {
	b.mu.Lock()
	defer b.mu.Unlock()
	latecomers := b.latecomers
	b.latecomers, b.confirmed = nil, true
	return latecomers
}

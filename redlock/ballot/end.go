package ballot

import (
	"time"

	"redlock-proxy/redlock/quorum"
)

// settle gives the final verdict on each answer that has come to the Settler. Then it notes that
// these masters owe nothing any more. After a ballot that stays won no master owes anything,
// because late grants are part of the lock and are not undone.
func (b *Ballot[A]) settle() {
	settled := b.masters.All()
	for i, a := range b.Answers {
		if a.State == quorum.Awaited && b.Verdict != Won {
			settled &^= 1 << i
		}
	}
	defer b.box.Lanes.Settle(&b.lane, settled) // after the undos were queued
	for i, a := range b.Answers {
		if a.State != quorum.Awaited && b.Settler != nil {
			b.Settler.Settle(b, i, a, b.Verdict)
		}
	}
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

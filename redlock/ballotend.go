package redlock

import (
	"time"

	"redlock-proxy/redlock/quorum"
)

// settle forgets what those masters owed that have answered: an undo, if it
// comes to that, is queued while the request still has its turn. All owe nothing
// to a ballot that stays won, for their late grants are part of the lock and will
// not be undone.
func (b *ballot[A]) settle() {
	if !b.creates {
		return
	}
	settled := b.locker.all()
	if b.verdict != Won {
		for i, a := range b.answers {
			if a.State == quorum.Awaited {
				settled &^= 1 << i
			}
		}
	}
	b.locker.owed.settle(&b.owing, settled)
}

// expire closes the ballot at its deadline and gives up connections that have
// been silent for too long.
func (b *ballot[A]) expire() {
	now := time.Now()
	b.closeAt(now)
	for i := range b.answers {
		if b.answers[i].State == quorum.Awaited {
			b.locker.masters[i].stream(b.db).GiveUpIfStalled(now)
		}
	}
}

func (b *ballot[A]) closeAt(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.verdict == Pending {
		b.close(now)
	}
}

// close, with mu held, gives the verdict without the answers still missing.
// They stay marked pending: whoever answers late is told of the verdict.
func (b *ballot[A]) close(now time.Time) {
	b.expired = true
	final := make([]quorum.Answer[A], len(b.answers))
	copy(final, b.answers)
	for i := range final {
		if final[i].State == quorum.Awaited {
			final[i].State = quorum.Unknown
		}
	}
	if b.verdict = b.decide(final, elapsed(b.started, now)); b.verdict == Pending {
		panic("redlock: a ballot without missing votes has no verdict")
	}
	b.closed <- struct{}{}
}

// revoke turns a ballot that was won into a lost one: late answers are told so,
// and those that came in between are answers now.
// The caller takes back what the others granted.
func (b *ballot[A]) revoke() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.verdict, b.confirmed = Lost, true
	b.addLatecomers()
	b.settle()
}

// confirm says that a ballot that was won stays so.
func (b *ballot[A]) confirm() {
	defer b.settle()
	for _, l := range b.takeLatecomers() {
		if b.late != nil {
			b.late(b, l.master, l.answer, Won)
		}
	}
}

// takeLatecomers: from here on late answers do not wait any more.
func (b *ballot[A]) takeLatecomers() []latecomer[A] {
	b.mu.Lock()
	defer b.mu.Unlock()
	latecomers := b.latecomers
	b.latecomers, b.confirmed = nil, true
	return latecomers
}

package notify

import (
	"slices"
	"time"

	"redlock-proxy/redlock/quorum"
)

// This file decides when a published message is reported. Nothing here waits or reads a clock.
//
// A script that releases a lock publishes a message on every master that runs it. The text of the copies
// does not distinguish one release from the next, so the copies of each master are counted. When the Q-th
// largest count rises, a quorum has published one more, and it is reported, because then the lock is free
// on a quorum. If a master is ahead of that count, its copy is reported after a grace. If more copies come
// after such an early report, it is reported again, because only these copies may have made the lock free.
// Copies of masters that are behind, and that nobody is ahead of, are late, and cause no report.
//
// So no message that a quorum published is lost, whatever the masters missed before. Two quorums have a
// master in common. The copy of that master makes its count larger than the Q-th largest was before the
// message. So the Q-th largest has risen since, or the copy is ahead of it.
//
// A master that missed a message stays behind, and one that published alone stays ahead, until the same
// message was not heard for a while, or the master's connection begins anew. Meanwhile a report may come a grace late.

// A message is a published message.
type message struct{ channel, payload string }

// A tally counts the copies of a message.
type tally struct {
	message message
	copies  []int     // by master
	last    time.Time // when the last copy arrived
	due     time.Time // when to look whether it can be forgotten
	untold  bool      // a copy that is ahead was not reported yet
	since   time.Time // when it arrived, or else the first copy since the last report
	gone    bool      // it was forgotten
}

// heard remembers tallies for a while. Its owner guards it.
type heard struct {
	masters, quorum int
	limit           int // most bytes of tallies
	tell            func(message)

	times   copyTimes
	tallies map[message]*tally
	order   []*tally // all of them, and some that are gone, ordered by due
	waiting []*tally // those that are untold and some others, ordered by since
	size    int
}

// copyTimes are the times that messages wait for copies.
type copyTimes struct {
	grace  time.Duration // from a copy to the report without a quorum
	memory time.Duration // from the last copy to the last possible one, also of a master that was stopped
}

const (
	tallyBytes    = 256      // rough size of a tally without its texts
	maxHeardBytes = 32 << 20 // of tallies
)

func newHeard(masters int, tell func(message)) *heard {
	return &heard{masters: masters, quorum: quorum.Size(masters), limit: maxHeardBytes, tell: tell, tallies: map[message]*tally{}}
}

func (m message) bytes() int { return len(m.channel) + len(m.payload) + tallyBytes }

// level returns the Q-th largest count: so many copies a quorum has published.
func (h *heard) level(x *tally) int {
	sorted := slices.Sorted(slices.Values(x.copies))
	return sorted[len(sorted)-h.quorum]
}

// begin brings a master whose connection begins anew up to the others: nothing that it published before
// can arrive any more.
func (h *heard) begin(master int) {
	for _, x := range h.tallies {
		x.copies[master] = max(x.copies[master], h.level(x))
	}
}

// count counts a master's copy of a message.
func (h *heard) count(m message, master int, now time.Time) {
	h.forget(now)
	x := h.tallies[m]
	if x == nil {
		x = &tally{message: m, copies: make([]int, h.masters), due: now.Add(h.times.memory)}
		h.tallies[m] = x
		h.order = append(h.order, x)
		h.size += m.bytes()
	}
	x.last = now
	before := h.level(x)
	x.copies[master]++
	level, most := h.level(x), slices.Max(x.copies)
	switch {
	case level > before:
		// rule: what is still ahead of a quorum is told later
		x.untold = x.untold && most > level
		h.tell(m)
	case most > level:
		// rule: a copy that may be of the next message has that told again
		h.wait(x, now)
	}
	if slices.Min(x.copies) == most {
		h.drop(x)
	}
	h.forget(now)
}

// wait lets a message be reported when a grace has passed without a quorum.
func (h *heard) wait(x *tally, now time.Time) {
	if !x.untold {
		x.untold, x.since = true, now
		h.waiting = append(h.waiting, x)
	}
}

// settle reports the messages that have waited long enough for their quorum.
func (h *heard) settle(now time.Time) {
	for len(h.waiting) > 0 {
		x := h.waiting[0]
		if x.untold && now.Before(x.since.Add(h.times.grace)) {
			break
		}
		h.waiting[0], h.waiting = nil, h.waiting[1:]
		h.tellLate(x)
	}
	h.forget(now)
}

func (h *heard) tellLate(x *tally) {
	if x.untold {
		x.untold = false
		h.tell(x.message)
	}
}

// next returns when settle must run again. It returns false if nothing waits.
func (h *heard) next() (at time.Time, ok bool) {
	switch {
	case len(h.waiting) > 0:
		return h.waiting[0].since.Add(h.times.grace), true
	case len(h.order) > 0:
		return h.order[0].due, true
	}
	return time.Time{}, false
}

// forget drops the tallies whose last copy is old, and the oldest ones that there is no room for.
func (h *heard) forget(now time.Time) {
	for len(h.order) > 0 {
		x := h.order[0]
		if h.size <= h.limit && now.Before(x.due) {
			return
		}
		h.order[0], h.order = nil, h.order[1:]
		if x.due = x.last.Add(h.times.memory); h.size <= h.limit && now.Before(x.due) && !x.gone {
			h.order = append(h.order, x)
			continue
		}
		h.drop(x)
	}
}

// drop forgets a tally. All masters have published equally often, or no other copy is expected.
func (h *heard) drop(x *tally) {
	if !x.gone {
		x.gone = true
		h.tellLate(x)
		delete(h.tallies, x.message)
		h.size -= x.message.bytes()
	}
}

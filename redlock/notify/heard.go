package notify

import (
	"slices"
	"time"

	"redlock-proxy/redlock/quorum"
)

// Which copies that the masters published are one message, and when it is
// told. Nothing in here waits or reads a clock.
//
// A script that releases a lock publishes on every master that runs it. What
// the copies say does not tell one release from the next, so they are counted:
// a copy joins the oldest incident behind the last in which its master had a
// part. An incident is told when a quorum has published it, because then the
// lock is free on a quorum, or after a grace if the rest does not come. One that
// was told early is told again when more copies come, for only these may have
// made the lock free; so also when one comes that has joined an earlier incident.
// What comes after the quorum is silent otherwise.
//
// So no message that a quorum published is lost, whatever the masters missed
// before it: behind the last incident that a quorum has told of, those masters
// can only begin another, and one of them is in every quorum.

// A message is what was published, to us under a pattern or the channel's name.
type message struct {
	byPattern                 bool
	pattern, channel, payload string
}

// An incident is one publication, as far as masters have told of it.
type incident struct {
	message message
	first   time.Time // when its first copy came
	masters []bool    // that have published it
	copies  int
	untold  bool      // a copy came since it was told, or it never was
	since   time.Time // when that copy came
	done    bool      // all have told of it or of a later one
}

// heard remembers incidents for a while. Its owner guards it.
type heard struct {
	quorum int
	limit  int // bytes of incidents
	tell   func(message)

	times     copyTimes
	last      []time.Time // when anything came from each master
	silences  []silence
	incidents map[message][]*incident // oldest first
	order     []*incident             // all of them, oldest first
	waiting   []*incident             // the untold ones, and some others, by since
	size      int
}

// copyTimes are how long incidents wait for copies.
type copyTimes struct {
	grace  time.Duration // from a copy until it is told without a quorum
	window time.Duration // how much later than the first copy another may come...
	memory time.Duration // ...and how much later if its master was silent meanwhile
}

// A silence is the last time in which nothing came from a master, no answer to
// a PING either. What it published meanwhile comes late.
type silence struct{ from, until time.Time }

const (
	incidentBytes = 256      // what an incident takes besides its texts, about
	maxHeardBytes = 32 << 20 // of incidents
)

func newHeard(masters int, tell func(message)) *heard {
	return &heard{
		quorum:    quorum.Size(masters),
		limit:     maxHeardBytes,
		tell:      tell,
		last:      make([]time.Time, masters),
		silences:  make([]silence, masters),
		incidents: map[message][]*incident{},
	}
}

func (m message) bytes() int {
	return len(m.pattern) + len(m.channel) + len(m.payload) + incidentBytes
}

// alive hears that something, whatever it is, came from a master, before what
// came is counted.
func (h *heard) alive(master int, now time.Time) {
	if now.Sub(h.last[master]) > h.times.window {
		h.silences[master] = silence{h.last[master], now}
	}
	h.last[master] = now
}

// count takes a master's copy of a message.
func (h *heard) count(m message, master int, now time.Time) {
	h.forget(now)
	x := h.find(m, master, now)
	if x == nil {
		x = &incident{message: m, first: now, masters: make([]bool, len(h.last))}
		h.incidents[m] = append(h.incidents[m], x)
		h.order = append(h.order, x)
		h.size += m.bytes()
	}
	complete := x.copies >= h.quorum
	x.masters[master] = true
	x.copies++
	switch {
	case complete:
		h.tellNextAgain(x, now)
	case x.copies >= h.quorum:
		x.untold = false
		h.tell(m)
	default:
		h.wait(x, now)
	}
	if x.copies == len(x.masters) {
		h.finish(x)
	}
	for h.size > h.limit {
		h.finish(h.order[0])
		h.forget(now)
	}
}

// wait has an incident told when a grace has passed without a quorum.
func (h *heard) wait(x *incident, now time.Time) {
	if !x.untold {
		x.untold, x.since = true, now
		h.waiting = append(h.waiting, x)
	}
}

// tellNextAgain: a copy has joined a complete incident, but may as well be of a
// later one that was told early, and have made the lock free.
func (h *heard) tellNextAgain(complete *incident, now time.Time) {
	for _, x := range h.incidents[complete.message] {
		if x.copies < h.quorum {
			h.wait(x, now)
			return
		}
	}
}

// find returns the incident that a copy belongs to; nil: a new one.
func (h *heard) find(m message, master int, now time.Time) *incident {
	list := h.incidents[m]
	next := len(list)
	for next > 0 && !list[next-1].masters[master] {
		next--
	}
	for _, x := range list[next:] {
		if h.mayBeLate(x, master, now) {
			return x
		}
	}
	return nil
}

// mayBeLate tells whether a master's copy that comes now can be of an incident.
// Without a silence the master would have told of it within the window.
func (h *heard) mayBeLate(x *incident, master int, now time.Time) bool {
	end, s := x.first.Add(h.times.window), h.silences[master]
	return !now.After(end) || !s.from.After(end) && !now.After(s.until.Add(h.times.window))
}

// settle tells what has waited for its quorum long enough.
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

func (h *heard) tellLate(x *incident) {
	if x.untold {
		x.untold = false
		h.tell(x.message)
	}
}

// next is when settle has something to do.
func (h *heard) next() (at time.Time, ok bool) {
	switch {
	case len(h.waiting) > 0:
		return h.waiting[0].since.Add(h.times.grace), true
	case len(h.order) > 0:
		return h.order[0].first.Add(h.times.memory), true
	}
	return time.Time{}, false
}

// forget drops what is so old that no master can be late with it.
func (h *heard) forget(now time.Time) {
	for len(h.order) > 0 {
		x := h.order[0]
		if !x.done && now.Before(x.first.Add(h.times.memory)) {
			return
		}
		h.finish(x)
		h.order[0], h.order = nil, h.order[1:]
	}
}

// finish takes an incident and those before it of the same message out of what
// copies can join.
func (h *heard) finish(last *incident) {
	if last.done {
		return
	}
	list := h.incidents[last.message]
	rest := list[slices.Index(list, last)+1:]
	for _, x := range list[:len(list)-len(rest)] {
		x.done = true
		h.size -= x.message.bytes()
		h.tellLate(x)
	}
	if len(rest) == 0 {
		delete(h.incidents, last.message)
	} else {
		h.incidents[last.message] = slices.Clone(rest)
	}
}

package notify

import (
	"time"

	"redlock-proxy/redlock/quorum"
)

// This file decides which published copies are one message, and when to report it.
// Nothing here waits or reads a clock.
//
// A script that releases a lock publishes a message on every master that runs it. The
// text of the copies does not distinguish one release from the next, so they are counted.
// A master's copy joins the oldest incident after the last one that this master took part
// in. An incident is reported when a quorum has published it, because then the lock is
// free on a quorum. Without a quorum it is reported after a grace. If more copies come
// after an early report, it is reported again, because only these copies may have made
// the lock free. The same holds when such a copy has joined an earlier incident. Copies
// after the quorum cause no other report.
//
// So no message that a quorum published is lost, whatever the masters missed before.
// After the last incident that a quorum published, those masters can only begin another
// one, and one of them is in every quorum.

// A message is a published message. If byPattern is set, it came for everyChannel and not
// for the name of its channel.
type message struct {
	byPattern        bool
	channel, payload string
}

// An incident is one publication, as far as masters have reported it.
type incident struct {
	message message
	first   time.Time  // when its first copy arrived
	masters quorum.Set // masters that have published it
	untold  bool       // it was not reported since its last copy
	since   time.Time  // when the first copy since the last report arrived
}

// heard remembers incidents for a while. Its owner guards it.
type heard struct {
	quorum int
	limit  int // most bytes of incidents
	tell   func(message)

	times     copyTimes
	last      []time.Time // when anything last arrived from each master
	silences  []silence
	incidents map[message][]*incident // oldest first
	order     []*incident             // all of them, oldest first
	waiting   []*incident             // the unreported incidents and some others, ordered by since
	size      int
}

// copyTimes are the times that incidents wait for copies.
type copyTimes struct {
	grace  time.Duration // from a copy to the report without a quorum
	window time.Duration // from the first copy to the last possible one
	memory time.Duration // the same, for a copy of a master that was silent meanwhile
}

// A silence is the last period in which nothing arrived from a master, not even an answer
// to a PING. Messages that the master published during it arrive late.
type silence struct{ from, until time.Time }

const (
	incidentBytes = 256      // rough size of an incident without its texts
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
	return len(m.channel) + len(m.payload) + incidentBytes
}

// alive records that something arrived from a master. It must be called before the
// message that arrived is counted.
func (h *heard) alive(master int, now time.Time) {
	if now.Sub(h.last[master]) > h.times.window {
		h.silences[master] = silence{h.last[master], now}
	}
	h.last[master] = now
}

// count counts a master's copy of a message.
func (h *heard) count(m message, master int, now time.Time) {
	h.forget(now)
	x := h.find(m, master, now)
	if x == nil {
		x = &incident{message: m, first: now}
		h.incidents[m] = append(h.incidents[m], x)
		h.order = append(h.order, x)
		h.size += m.bytes()
	}
	complete := x.masters.Len() >= h.quorum
	x.masters |= 1 << master
	switch {
	case complete:
		// rule: a copy that may be of the next message has that told again
		h.tellNextAgain(x, now)
	case x.masters.Len() >= h.quorum:
		x.untold = false
		h.tell(m)
	default:
		h.wait(x, now)
	}
	h.forget(now)
}

// wait lets an incident be reported when a grace has passed without a quorum.
func (h *heard) wait(x *incident, now time.Time) {
	if !x.untold {
		x.untold, x.since = true, now
		h.waiting = append(h.waiting, x)
	}
}

// tellNextAgain handles a copy that has joined a complete incident. The copy may belong
// to the next incident, which was reported early, and may have made its lock free.
func (h *heard) tellNextAgain(complete *incident, now time.Time) {
	var next *incident
	list := h.incidents[complete.message]
	for i := len(list) - 1; list[i] != complete; i-- {
		if list[i].masters.Len() < h.quorum {
			next = list[i]
		}
	}
	if next != nil {
		h.wait(next, now)
	}
}

// find returns the incident that a copy belongs to. It returns nil for a new one.
func (h *heard) find(m message, master int, now time.Time) *incident {
	list := h.incidents[m]
	next := len(list)
	for next > 0 && !list[next-1].masters.Has(master) {
		next--
	}
	for _, x := range list[next:] {
		if h.mayBeLate(x, master, now) {
			return x
		}
	}
	return nil
}

// mayBeLate tells whether a master's copy that arrives now can belong to an incident.
// Without a silence the master would have reported it within the window.
func (h *heard) mayBeLate(x *incident, master int, now time.Time) bool {
	end, s := x.first.Add(h.times.window), h.silences[master]
	return !now.After(end) || !s.from.After(end) && !now.After(s.until.Add(h.times.window))
}

// settle reports the incidents that have waited long enough for their quorum.
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

// next returns when settle must run again. It returns false if nothing waits.
func (h *heard) next() (at time.Time, ok bool) {
	switch {
	case len(h.waiting) > 0:
		return h.waiting[0].since.Add(h.times.grace), true
	case len(h.order) > 0:
		return h.order[0].first.Add(h.times.memory), true
	}
	return time.Time{}, false
}

// forget drops the oldest incidents. It drops those that no late copy can join, because
// they are old or all masters have published them. It also drops those that there is no
// room for.
func (h *heard) forget(now time.Time) {
	for len(h.order) > 0 {
		x := h.order[0]
		if x.masters.Len() < len(h.last) && h.size <= h.limit && now.Before(x.first.Add(h.times.memory)) {
			return
		}
		h.tellLate(x)
		h.size -= x.message.bytes()
		if list := h.incidents[x.message]; len(list) == 1 {
			delete(h.incidents, x.message)
		} else {
			h.incidents[x.message] = list[1:]
		}
		h.order[0], h.order = nil, h.order[1:]
	}
}

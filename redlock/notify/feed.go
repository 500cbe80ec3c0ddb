package notify

import (
	"maps"
	"slices"
	"time"

	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/resp"
)

// A feed is what all masters are asked to report, because somebody wants some of it. The Hub picks
// out what each Subscriber wants.
type feed struct {
	changes bool // of all keys; else the messages of all channels
	open    bool // the masters are asked
	// exact and loose are who wants what: channels and patterns, or keys and prefixes.
	exact, loose trackers
	left         time.Time // when the last subscriber left
	masters      []confirmation
	count        int           // number of masters that have confirmed it
	patience     time.Time     // until then all answers are waited for, and afterwards a quorum
	decided      chan struct{} // closed once enough masters have answered
	from         time.Time     // when it was; messages published since then must be heard
}

// A confirmation is a master's answer on its present connection.
type confirmation struct {
	at      time.Time // zero if the master has not confirmed
	refused bool      // also while it is not connected, until it is asked again
}

// trackers are subscribers by the name that they want.
type trackers map[string]map[*Subscriber]struct{}

func (w want) trackers() trackers {
	if w.loose {
		return w.feed.loose
	}
	return w.feed.exact
}

// verb is the command that begins the feed, or ends it. The master's confirmation begins with it.
func (f *feed) verb(ends bool) string {
	switch {
	case f.changes:
		return "tracking"
	case ends:
		return "punsubscribe"
	}
	return "psubscribe"
}

// question is the whole command.
func (f *feed) question(ends bool) []byte {
	switch {
	case !f.changes:
		return resp.AppendCommand(nil, f.verb(ends), "*")
	case ends:
		return resp.AppendCommand(nil, "CLIENT", "TRACKING", "OFF")
	}
	return resp.AppendCommand(nil, "CLIENT", "TRACKING", "ON", "BCAST")
}

func (f *feed) isWanted() bool { return len(f.exact)+len(f.loose) > 0 }

// subscribers returns all that want something of the feed.
func (f *feed) subscribers() map[*Subscriber]struct{} {
	all := map[*Subscriber]struct{}{}
	for _, t := range []trackers{f.exact, f.loose} {
		for _, subscribers := range t {
			maps.Copy(all, subscribers)
		}
	}
	return all
}

func (f *feed) covered() bool { return f.count >= quorum.Size(len(f.masters)) }

// expose notes that everybody may have missed messages.
func (f *feed) expose() {
	if !f.changes {
		for s := range f.subscribers() {
			s.exposed = true
		}
	}
}

// tellGap sends an EventGap to those that may have missed messages, if none is missed from now on.
func (f *feed) tellGap() {
	if f.changes || !f.covered() {
		return
	}
	for s := range f.subscribers() {
		if s.exposed {
			s.exposed = false
			s.tell(Event{Kind: EventGap})
		}
	}
}

// join lets a subscriber want something, with mu held, and asks the masters for the feed.
func (l *Hub) join(s *Subscriber, w want) {
	s.wanted[w] = struct{}{}
	t, f := w.trackers(), w.feed
	if t[w.name] == nil {
		t[w.name] = map[*Subscriber]struct{}{}
	}
	t[w.name][s] = struct{}{}
	if f.open {
		return
	}
	f.open, f.decided, f.from, f.patience = true, make(chan struct{}), time.Time{}, time.Now().Add(l.timeout())
	l.start()
	l.lookBy(f.patience)
	for _, r := range l.listeners {
		r.ask(f)
	}
	l.decide()
}

// leave ends join. The masters go on with the feed for a while.
func (l *Hub) leave(s *Subscriber, w want) {
	delete(s.wanted, w)
	t, f := w.trackers(), w.feed
	if delete(t[w.name], s); len(t[w.name]) == 0 {
		delete(t, w.name)
	}
	if f.open && !f.isWanted() {
		f.left = time.Now()
		l.lookBy(f.left.Add(feedLinger))
	}
}

// stop tells the masters that nobody wants a feed any more.
func (l *Hub) stop(f *feed, now time.Time) {
	f.open, f.count, l.idle = false, 0, now
	for i := range f.masters {
		f.masters[i].at = time.Time{}
	}
	for _, r := range l.listeners {
		r.askNoMore(f)
	}
}

// confirm records that a master reports a feed from now on.
func (l *Hub) confirm(f *feed, master int, now time.Time) {
	if !f.open || !f.masters[master].at.IsZero() {
		return
	}
	f.masters[master] = confirmation{at: now}
	f.count++
	for s := range f.subscribers() {
		if f.changes && s.informed {
			s.tell(Event{Kind: EventChanged})
		}
	}
	f.tellGap()
	l.decide()
}

// refuse records that a master does not report a feed.
func (l *Hub) refuse(f *feed, master int) {
	f.masters[master].refused = true
	l.decide()
}

// lose records that a master's connection has ended. At proof the connection was last
// known to work.
//
// While the Hub listens to a quorum, it hears every message that a quorum published. The
// Hub may have heard nothing from this master since proof. So a quorum of other masters
// must have been confirmed all the time since. Otherwise messages may have been missed.
func (l *Hub) lose(master int, proof time.Time) {
	for f := range l.all() {
		was := f.masters[master].at
		f.masters[master].at = time.Time{}
		if !f.open || was.IsZero() {
			continue
		}
		f.count--
		since := slices.MaxFunc([]time.Time{proof, was, f.from}, time.Time.Compare)
		others := 0
		for _, c := range f.masters {
			if !c.at.IsZero() && !c.at.After(since) {
				others++
			}
		}
		if others < quorum.Size(len(f.masters)) {
			f.expose()
		}
		l.undecide(f)
		f.tellGap()
	}
}

// undecide lets those that come now wait for the masters' answers again, if too few report a feed.
func (l *Hub) undecide(f *feed) {
	if f.open && !f.from.IsZero() && !f.covered() {
		f.decided, f.from, f.patience = make(chan struct{}), time.Time{}, time.Now().Add(l.timeout())
		l.lookBy(f.patience)
	}
}

// decide looks whether enough masters have answered.
func (l *Hub) decide() {
	for f := range l.all() {
		if !f.open || !f.from.IsZero() {
			continue
		}
		missing := 0
		for _, r := range l.listeners {
			if c := f.masters[r.number]; r.state != down && c.at.IsZero() && !c.refused {
				missing++
			}
		}
		now, needed := time.Now(), quorum.Size(len(f.masters))
		if missing == 0 || !now.Before(f.patience) && (f.covered() || f.count+missing < needed) {
			f.from = now
			close(f.decided)
		}
	}
}

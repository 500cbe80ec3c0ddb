package notify

import (
	"slices"
	"time"

	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/resp"
)

// A topic is something that a master can be asked to report.
type topic struct {
	kind topicKind
	name string // name of the channel or pattern
}

type topicKind uint8

const (
	ofChannel topicKind = iota
	ofPattern
	ofChanges // changes of all keys
)

// verb is the command that begins a topic, or ends it. The master's confirmation begins
// with it.
func (t topic) verb(ends bool) string {
	verb := [...]string{"subscribe", "psubscribe", "tracking"}[t.kind]
	if ends {
		verb = [...]string{"unsubscribe", "punsubscribe", "tracking"}[t.kind]
	}
	return verb
}

// question is the whole command.
func (t topic) question(ends bool) []byte {
	switch {
	case t.kind != ofChanges:
		return resp.AppendCommand(nil, t.verb(ends), t.name)
	case ends:
		return resp.AppendCommand(nil, "CLIENT", "TRACKING", "OFF")
	}
	return resp.AppendCommand(nil, "CLIENT", "TRACKING", "ON", "BCAST")
}

// A subscription is a topic that somebody wants, with the masters that report it.
type subscription struct {
	topic   topic
	wanted  map[*Subscriber]struct{}
	from    time.Time // messages published since then must be heard
	left    time.Time // when the last subscriber left; ofChanges only
	masters []confirmation
	count   int           // number of masters that have confirmed it
	settled chan struct{} // closed once no answer is missing
	covered chan struct{} // closed once a quorum has confirmed it
}

// A confirmation is a master's answer on its present connection.
type confirmation struct {
	at      time.Time // zero if the master has not confirmed
	refused bool
}

// want makes s hear a topic, with mu held.
func (l *Hub) want(s *Subscriber, t topic) *subscription {
	sub := l.topics[t]
	if sub == nil {
		sub = &subscription{
			topic: t, wanted: map[*Subscriber]struct{}{}, from: time.Now().Add(l.timeout()),
			masters: make([]confirmation, len(l.masters)),
			settled: make(chan struct{}), covered: make(chan struct{}),
		}
		l.topics[t] = sub
		l.open()
		for _, r := range l.listeners {
			r.ask(sub)
		}
		l.settle(sub)
	}
	if _, before := sub.wanted[s]; !before {
		sub.wanted[s] = struct{}{}
		s.topics[t] = sub
		if sub.matters() && !l.covers(sub) {
			s.uncovered++
		}
	}
	return sub
}

// leave ends want, with mu held.
func (l *Hub) leave(s *Subscriber, t topic) {
	sub := s.topics[t]
	if sub == nil {
		return
	}
	delete(s.topics, t)
	delete(sub.wanted, s)
	if sub.matters() && !l.covers(sub) {
		s.uncovered--
		l.tellGap(s)
	}
	if len(sub.wanted) > 0 {
		return
	}
	if t.kind == ofChanges {
		sub.left = time.Now()
		l.lookBy(sub.left.Add(trackingLinger))
		return
	}
	l.drop(sub)
}

// drop tells the masters, with mu held, that nobody wants a topic any more.
func (l *Hub) drop(sub *subscription) {
	delete(l.topics, sub.topic)
	for _, r := range l.listeners {
		r.askNoMore(sub)
	}
	if len(l.topics) == 0 {
		l.idle = time.Now()
		l.lookBy(l.idle.Add(listenerLinger))
	}
}

// matters tells whether a missed event of the topic causes an EventGap.
func (sub *subscription) matters() bool { return sub.topic.kind != ofChanges }

func (l *Hub) covers(sub *subscription) bool { return sub.count >= quorum.Size(len(l.masters)) }

// confirm records that a master reports a topic from now on.
func (l *Hub) confirm(sub *subscription, master int, now time.Time) {
	if l.topics[sub.topic] != sub || !sub.masters[master].at.IsZero() {
		return
	}
	sub.masters[master] = confirmation{at: now}
	if sub.count++; sub.count == quorum.Size(len(l.masters)) {
		l.coveredAgain(sub)
	}
	if !sub.matters() {
		for s := range sub.wanted {
			if s.informed {
				s.tell(Event{Kind: EventChanged})
			}
		}
	}
	l.settle(sub)
}

func (l *Hub) coveredAgain(sub *subscription) {
	if !isClosed(sub.covered) {
		close(sub.covered)
	}
	if !sub.matters() {
		return
	}
	for s := range sub.wanted {
		s.uncovered--
		l.tellGap(s)
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// tellGap sends a subscriber an EventGap if it may have missed messages and misses none
// from now on.
func (l *Hub) tellGap(s *Subscriber) {
	if s.uncovered > 0 || !s.exposed {
		return
	}
	s.exposed = false
	for t := range s.topics {
		if t.kind != ofChanges {
			s.tell(Event{Kind: EventGap})
			return
		}
	}
}

// refuse records that a master does not report a topic.
func (l *Hub) refuse(sub *subscription, master int) {
	sub.masters[master].refused = true
	l.settle(sub)
}

// lose records that a master's connection has ended. At proof the connection was last
// known to work.
//
// While the Hub listens to a quorum, it hears every message that a quorum published. The
// Hub may have heard nothing from this master since proof. So a quorum of other masters
// must have been confirmed all the time since. Otherwise messages may have been missed.
func (l *Hub) lose(master int, proof time.Time) {
	for _, sub := range l.topics {
		was := sub.masters[master]
		sub.masters[master] = confirmation{}
		if was.at.IsZero() {
			continue
		}
		sub.count--
		if !sub.matters() {
			continue
		}
		since := slices.MaxFunc([]time.Time{proof, was.at, sub.from}, time.Time.Compare)
		others := 0
		for _, c := range sub.masters {
			if !c.at.IsZero() && !c.at.After(since) {
				others++
			}
		}
		for s := range sub.wanted {
			if sub.count == quorum.Size(len(l.masters))-1 {
				s.uncovered++
			}
			s.exposed = s.exposed || others < quorum.Size(len(l.masters))
			l.tellGap(s)
		}
	}
}

// settleAll checks, after a listener's state has changed, whether answers are still
// missing.
func (l *Hub) settleAll() {
	for _, sub := range l.topics {
		l.settle(sub)
	}
}

func (l *Hub) settle(sub *subscription) {
	if isClosed(sub.settled) {
		return
	}
	for _, r := range l.listeners {
		c := sub.masters[r.number]
		if r.state != down && c.at.IsZero() && !c.refused {
			return
		}
	}
	close(sub.settled)
	if now := time.Now(); now.Before(sub.from) {
		sub.from = now
	}
}

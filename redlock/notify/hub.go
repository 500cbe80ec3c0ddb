package notify

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/stream"
)

// A Hub has the subscriptions of all Subscribers, and one connection to each master. It
// opens the connections for the first subscription, and closes them some time after the
// last one has ended. All goroutines may use it.
type Hub struct {
	masters []Source
	timeout func() time.Duration
	log     *slog.Logger
	ctx     context.Context

	mu        sync.Mutex // held for bookkeeping only; subscribers are called without it
	topics    map[topic]*subscription
	keys      trackers
	prefixes  trackers
	heard     *heard
	changes   *keyChanges
	untold    []bool      // by master: it cannot report changed keys
	listeners []*listener // by master; nil if nothing is wanted
	end       context.CancelFunc
	idle      time.Time   // since when nothing is wanted
	next      time.Time   // when the timer calls look
	timer     *time.Timer // never nil
	closed    bool
	running   sync.WaitGroup
}

const (
	// listenerLinger is how long the connections stay open when nothing is wanted.
	listenerLinger = time.Minute
	// trackingLinger is how long masters go on reporting changes that nobody wants. Without
	// it each blocking command would turn the reports on and off.
	trackingLinger = 5 * time.Second
)

// A Source is a master for a Hub. It may become another server.
type Source interface {
	Name() string
	Embedded() bool
	Server() stream.Server // how to reach it now
}

// stall is how long a master may be silent before its connection is given up.
func (l *Hub) stall() time.Duration { return stream.Stall(l.timeout()) }

// trackers are subscribers by the key or prefix that they track.
type trackers map[string]map[*Subscriber]struct{}

func (t trackers) join(s *Subscriber, name string) {
	if t[name] == nil {
		t[name] = map[*Subscriber]struct{}{}
	}
	t[name][s] = struct{}{}
}

func (t trackers) leave(s *Subscriber, name string) {
	delete(t[name], s)
	if len(t[name]) == 0 {
		delete(t, name)
	}
}

func (t trackers) leaveAll(s *Subscriber, names map[string]struct{}) {
	for name := range names {
		t.leave(s, name)
	}
	clear(names)
}

// New makes a Hub of these masters. timeout returns how long to wait for their answers.
// The goroutines end when ctx ends.
func New(ctx context.Context, masters []Source, timeout func() time.Duration, log *slog.Logger) *Hub {
	l := &Hub{
		timeout: timeout, log: log, ctx: ctx,
		topics: map[topic]*subscription{}, keys: trackers{}, prefixes: trackers{},
	}
	l.timer = time.AfterFunc(0, func() { stream.Contained(log, l.look) }) // open sets it again
	l.count(masters)
	return l
}

// count takes over a list of masters, with mu held or before the Hub is used.
func (l *Hub) count(masters []Source) {
	l.masters, l.untold = masters, make([]bool, len(masters))
	l.heard = newHeard(len(masters), l.tellMessage)
	l.changes = newKeyChanges(len(masters), l.tellChange)
}

// Recount makes the Hub listen to another number of masters. Messages and changes that the former
// masters have not reported yet are lost. So subscribers receive an EventGap, or an EventChanged
// without key, once a quorum of the new masters has confirmed their subscriptions.
func (l *Hub) Recount(masters []Source) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Equal(masters, l.masters) {
		return
	}
	open := l.listeners != nil
	if open {
		l.end()
		l.listeners = nil
	}
	for _, sub := range l.topics {
		for s := range sub.wanted {
			if sub.matters() && l.covers(sub) {
				s.uncovered++
			}
			s.exposed = s.exposed || sub.matters()
		}
		sub.masters, sub.count = make([]confirmation, len(masters)), 0
	}
	l.count(masters)
	if open {
		l.open()
	}
}

// Close waits for all goroutines. The Hub's context must have ended.
func (l *Hub) Close() {
	l.mu.Lock()
	l.closed = true
	l.timer.Stop()
	l.mu.Unlock()
	l.running.Wait()
}

// CanTrack tells whether a quorum of masters can report changed keys, as far as is known.
func (l *Hub) CanTrack() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	able := 0
	for i, m := range l.masters {
		if !m.Embedded() && !l.untold[i] {
			able++
		}
	}
	return able >= quorum.Size(len(l.masters))
}

// open starts the listeners, with mu held.
func (l *Hub) open() {
	if l.listeners != nil || l.closed {
		return
	}
	ctx, end := context.WithCancel(l.ctx)
	l.end = end
	for i, m := range l.masters {
		r := &listener{hub: l, master: m, number: i, wake: make(chan struct{}, 1)}
		l.listeners = append(l.listeners, r)
		l.running.Go(func() { stream.Contained(l.log, func() { r.run(ctx) }) })
	}
	l.heard.times = l.copyTimes()
	l.lookAt(time.Now())
}

func (l *Hub) copyTimes() copyTimes {
	return copyTimes{grace: l.timeout(), memory: 4 * l.stall()}
}

// look reports what has waited long enough, and closes what nobody wants.
func (l *Hub) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listeners == nil || l.ctx.Err() != nil {
		return
	}
	now := time.Now()
	l.heard.times = l.copyTimes() // a reload may change them
	l.heard.settle(now)
	l.changes.settle(now)
	l.lookAt(l.linger(now))
}

// linger closes what nobody has wanted for long enough. It returns when to look again.
func (l *Hub) linger(now time.Time) (next time.Time) {
	next = now.Add(listenerLinger)
	if sub := l.topics[topic{kind: ofChanges}]; sub != nil && len(sub.wanted) == 0 {
		if end := sub.left.Add(trackingLinger); now.Before(end) {
			next = end
		} else {
			l.drop(sub)
		}
	}
	if len(l.topics) == 0 {
		if end := l.idle.Add(listenerLinger); now.Before(end) {
			next = end
		} else {
			l.end()
			l.listeners = nil
		}
	}
	for _, due := range []func() (time.Time, bool){l.heard.next, l.changes.next} {
		if at, ok := due(); ok && at.Before(next) {
			next = at
		}
	}
	return next
}

func (l *Hub) lookAt(at time.Time) {
	l.next = at
	l.timer.Reset(time.Until(at))
}

// lookBy makes look run at the given time or before, with mu held.
func (l *Hub) lookBy(at time.Time) {
	if at.Before(l.next) {
		l.lookAt(at)
	}
}

// await waits for the masters' answers to subs, as Subscribe describes.
func (l *Hub) await(ctx context.Context, subs []*subscription) {
	soon, cancelSoon := context.WithTimeout(ctx, l.timeout())
	defer cancelSoon()
	late, cancelLate := context.WithTimeout(ctx, l.stall())
	defer cancelLate()
	for _, sub := range subs {
		select {
		case <-sub.settled:
			continue
		case <-soon.Done():
		}
		if !l.opening() {
			return
		}
		select {
		case <-sub.settled:
		case <-sub.covered:
		case <-late.Done():
			return
		}
	}
}

// opening tells whether a listener has neither connected nor failed yet.
func (l *Hub) opening() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.listeners, func(r *listener) bool { return r.state == opening })
}

// arrived records a sign of life.
func (l *Hub) arrived(r *listener, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.arrived = now
}

// published counts a message from a master.
func (l *Hub) published(m message, r *listener, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.topics[m.topic()] == nil || !r.current() {
		return
	}
	l.heard.count(m, r.number, now)
	if at, ok := l.heard.next(); ok {
		l.lookBy(at)
	}
}

func (m message) topic() topic {
	if m.byPattern {
		return everyChannel
	}
	return topic{ofChannel, m.channel}
}

// tellMessage hands a message, with mu held, to the subscribers that want it.
func (l *Hub) tellMessage(m message) {
	sub := l.topics[m.topic()]
	if sub == nil {
		return
	}
	e := Event{Kind: EventMessage, Channel: []byte(m.channel), Payload: []byte(m.payload)}
	for s := range sub.wanted {
		if !m.byPattern {
			s.tell(e)
			continue
		}
		e.Kind = EventPatternMessage
		for pattern := range s.patterns {
			if resp.GlobMatch(pattern, e.Channel) {
				e.Pattern = []byte(pattern)
				s.tell(e)
			}
		}
	}
}

// keysChanged counts changed keys that a master reports. If keys is nil, any key may have
// changed.
func (l *Hub) keysChanged(keys [][]byte, r *listener, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !r.current() {
		return
	}
	if keys == nil {
		l.changes.count(keyChange{any: true}, r.number, now)
	}
	for _, key := range keys {
		if l.tracked(key) {
			l.changes.count(keyChange{key: string(key)}, r.number, now)
		}
	}
	if at, ok := l.changes.next(); ok {
		l.lookBy(at)
	}
}

func (l *Hub) tracked(key []byte) bool {
	if l.keys[string(key)] != nil {
		return true
	}
	for prefix := range l.prefixes {
		if bytes.HasPrefix(key, []byte(prefix)) {
			return true
		}
	}
	return false
}

// tellChange hands a change, with mu held, once to each subscriber that tracks its key.
func (l *Hub) tellChange(c keyChange) {
	e, tracking := Event{Kind: EventChanged}, map[*Subscriber]struct{}{}
	if c.any {
		if sub := l.topics[topic{kind: ofChanges}]; sub != nil {
			maps.Copy(tracking, sub.wanted)
		}
	} else {
		e.Key = []byte(c.key)
		maps.Copy(tracking, l.keys[c.key])
		for prefix, subscribers := range l.prefixes {
			if strings.HasPrefix(c.key, prefix) {
				maps.Copy(tracking, subscribers)
			}
		}
	}
	for s := range tracking {
		s.tell(e)
	}
}

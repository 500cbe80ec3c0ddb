package notify

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/stream"
)

// A Hub is what subscribers want of the masters, and the one connection to
// each master that brings it. The connections are opened with the first wish
// and kept for a while after the last.
type Hub struct {
	masters []Source
	timeout func() time.Duration
	log     *slog.Logger
	ctx     context.Context

	mu        sync.Mutex // held for bookkeeping only; hear is called without it
	topics    map[topic]*subscription
	keys      trackers
	prefixes  trackers
	heard     *heard
	changes   *keyChanges
	untold    []bool      // masters that cannot tell of changes
	listeners []*listener // by master; nil while nothing is wanted
	end       context.CancelFunc
	idle      time.Time     // since when nothing is wanted
	next      time.Time     // when the keeper looks again
	wake      chan struct{} // to the keeper: next has changed
	closed    bool
	running   sync.WaitGroup
}

const (
	// listenerLinger is how long the connections are kept when nothing is wanted.
	listenerLinger = time.Minute
	// trackingLinger is how long masters go on telling of changes that nobody
	// wants to hear of, so that not every blocking command turns it on and off.
	trackingLinger = 5 * time.Second
)

// A Source is a master as it is listened to. It may become another server.
type Source interface {
	Name() string
	Embedded() bool
	Server() stream.Server // as it is reached now
}

// stall is how long a master's silence is waited for.
func (l *Hub) stall() time.Duration { return stream.Stall(l.timeout()) }

// trackers are subscribers by the key or prefix they track.
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

// New makes a Hub of these masters. timeout is how long their answers are waited for.
func New(ctx context.Context, masters []Source, timeout func() time.Duration, log *slog.Logger) *Hub {
	l := &Hub{
		masters: masters, timeout: timeout, log: log, ctx: ctx,
		topics: map[topic]*subscription{}, keys: trackers{}, prefixes: trackers{},
		untold: make([]bool, len(masters)),
		wake:   make(chan struct{}, 1),
	}
	l.heard = newHeard(len(masters), l.tellMessage)
	l.changes = newKeyChanges(len(masters), l.tellChange)
	return l
}

// Close waits for all goroutines, whose context has ended.
func (l *Hub) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.running.Wait()
}

// CanTrack: a quorum of masters can tell of changed keys, as far as is known.
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

// open begins to listen, with mu held.
func (l *Hub) open() {
	if l.listeners != nil || l.closed {
		return
	}
	ctx, end := context.WithCancel(l.ctx)
	l.end = end
	for i, m := range l.masters {
		r := &listener{listening: l, master: m, number: i, wake: make(chan struct{}, 1)}
		l.listeners = append(l.listeners, r)
		l.running.Go(func() { stream.Contained(l.log, func() { r.run(ctx) }) })
	}
	l.next, l.heard.times = time.Time{}, l.copyTimes()
	l.running.Go(func() { stream.Contained(l.log, func() { l.keep(ctx) }) })
}

func (l *Hub) copyTimes() copyTimes {
	timeout := l.timeout()
	return copyTimes{grace: timeout, window: 4 * timeout, memory: 4 * l.stall()}
}

// keep tells what has waited long enough and closes what nobody wants. It ends
// with the connections.
func (l *Hub) keep(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-l.wake:
		case <-ctx.Done():
			return
		}
		l.mu.Lock()
		if l.listeners == nil || ctx.Err() != nil {
			l.mu.Unlock()
			return
		}
		now := time.Now()
		l.heard.times = l.copyTimes() // which a reload may change
		l.heard.settle(now)
		l.changes.settle(now)
		l.linger(now)
		if l.listeners == nil {
			l.mu.Unlock()
			return
		}
		timer.Reset(l.next.Sub(now))
		l.mu.Unlock()
	}
}

// linger closes what nobody has wanted for long enough and finds when to look
// again.
func (l *Hub) linger(now time.Time) {
	l.next = now.Add(listenerLinger)
	if sub := l.topics[topic{kind: ofChanges}]; sub != nil && len(sub.wanted) == 0 {
		if end := sub.left.Add(trackingLinger); now.Before(end) {
			l.next = end
		} else {
			l.drop(sub)
		}
	}
	if len(l.topics) == 0 {
		if end := l.idle.Add(listenerLinger); now.Before(end) {
			l.next = end
		} else {
			l.end()
			l.listeners = nil
			return
		}
	}
	for _, due := range []func() (time.Time, bool){l.heard.next, l.changes.next} {
		if at, ok := due(); ok && at.Before(l.next) {
			l.next = at
		}
	}
}

// keepBy makes the keeper look at a time, with mu held.
func (l *Hub) keepBy(at time.Time) {
	if at.Before(l.next) {
		l.next = at
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// await returns when masters have answered to subs, as Subscribe says.
func (l *Hub) await(ctx context.Context, subs []*subscription) {
	began := time.Now()
	soon := time.NewTimer(l.timeout())
	defer soon.Stop()
	for _, sub := range subs {
		select {
		case <-sub.settled:
			continue
		case <-ctx.Done():
			return
		case <-soon.C:
		}
		break
	}
	if !l.opening() {
		return
	}
	late := time.NewTimer(time.Until(began.Add(l.stall())))
	defer late.Stop()
	for _, sub := range subs {
		select {
		case <-sub.settled:
		case <-sub.covered:
		case <-ctx.Done():
			return
		case <-late.C:
			return
		}
	}
}

// opening tells whether a listener has neither succeeded nor failed yet.
func (l *Hub) opening() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.listeners {
		if r.state == dialling && !r.tried {
			return true
		}
	}
	return false
}

// arrived takes note of a sign of life, before what came with it is counted.
func (l *Hub) arrived(master int, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard.alive(master, now)
}

// published hears of a message from a master.
func (l *Hub) published(m message, master int, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.topics[m.topic()] == nil {
		return
	}
	l.heard.count(m, master, now)
	if at, ok := l.heard.next(); ok {
		l.keepBy(at)
	}
}

func (m message) topic() topic {
	if m.byPattern {
		return topic{ofPattern, m.pattern}
	}
	return topic{ofChannel, m.channel}
}

// tellMessage hands a message to those who want it, with mu held.
func (l *Hub) tellMessage(m message) {
	sub := l.topics[m.topic()]
	if sub == nil {
		return
	}
	e := Event{Kind: EventMessage, Channel: []byte(m.channel), Payload: []byte(m.payload)}
	if m.byPattern {
		e.Kind, e.Pattern = EventPatternMessage, []byte(m.pattern)
	}
	for s := range sub.wanted {
		s.tell(e)
	}
}

// keysChanged hears from a master of changed keys; nil: any may have changed.
func (l *Hub) keysChanged(keys [][]byte, master int, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if keys == nil {
		l.changes.count(keyChange{any: true}, master, now)
	}
	for _, key := range keys {
		if l.tracked(key) {
			l.changes.count(keyChange{key: string(key)}, master, now)
		}
	}
	if at, ok := l.changes.next(); ok {
		l.keepBy(at)
	}
}

func (l *Hub) tracked(key []byte) bool {
	if l.keys[string(key)] != nil {
		return true
	}
	for prefix := range l.prefixes {
		if len(prefix) <= len(key) && string(key[:len(prefix)]) == prefix {
			return true
		}
	}
	return false
}

// tellChange hands a change to those who track it, once each, with mu held.
func (l *Hub) tellChange(c keyChange) {
	if c.any {
		if sub := l.topics[topic{kind: ofChanges}]; sub != nil {
			for s := range sub.wanted {
				s.tell(Event{Kind: EventChanged})
			}
		}
		return
	}
	e := Event{Kind: EventChanged, Key: []byte(c.key)}
	var told map[*Subscriber]struct{}
	if len(l.prefixes) > 0 {
		told = map[*Subscriber]struct{}{}
	}
	tell := func(subscribers map[*Subscriber]struct{}) {
		for s := range subscribers {
			if _, before := told[s]; before {
				continue
			}
			if told != nil {
				told[s] = struct{}{}
			}
			s.tell(e)
		}
	}
	tell(l.keys[c.key])
	for prefix, subscribers := range l.prefixes {
		if strings.HasPrefix(c.key, prefix) {
			tell(subscribers)
		}
	}
}

package notify

import (
	"context"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"redlock-proxy/redlock/loop"
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
	loop    *loop.Loop // its goroutines wait by it; nil: as usual

	mu        sync.Mutex // held for bookkeeping only; subscribers are called without it
	messages  feed
	changes   feed
	heard     *heard
	bursts    *keyChanges
	listeners []*listener // by master; nil if nothing is wanted
	end       context.CancelFunc
	idle      time.Time     // since when no feed is open
	next      time.Time     // when watch calls look
	sooner    chan struct{} // has room for one: next has changed
	closed    bool
	running   sync.WaitGroup
}

const (
	// listenerLinger is how long the connections stay open when nothing is wanted.
	listenerLinger = time.Minute
	// feedLinger is how long masters go on reporting what nobody wants. Without it each
	// blocking command would turn the reports on and off.
	feedLinger = 5 * time.Second
)

// A Source is a master for a Hub. It may become another server.
type Source interface {
	Name() string
	Embedded() bool
	Server() stream.Server // how to reach it now
}

// stall is how long a master may be silent before its connection is given up.
func (l *Hub) stall() time.Duration { return stream.Stall(l.timeout()) }

// all are the feeds.
func (l *Hub) all() iter.Seq[*feed] { return slices.Values([]*feed{&l.messages, &l.changes}) }

// New makes a Hub of these masters. timeout returns how long to wait for their answers. Its
// goroutines wait by in, which may be nil, and end when ctx ends.
func New(ctx context.Context, in *loop.Loop, masters []Source, timeout func() time.Duration, log *slog.Logger) *Hub {
	l := &Hub{timeout: timeout, log: log, ctx: ctx, loop: in}
	for f := range l.all() {
		f.exact, f.loose = trackers{}, trackers{}
	}
	l.changes.changes = true
	l.count(masters)
	return l
}

// count takes over a list of masters, with mu held or before the Hub is used.
func (l *Hub) count(masters []Source) {
	l.masters = masters
	for f := range l.all() {
		f.masters, f.count = make([]confirmation, len(masters)), 0
	}
	l.heard = newHeard(len(masters), l.tellMessage)
	l.bursts = newKeyChanges(len(masters), l.tellChange)
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
	l.messages.expose()
	l.count(masters)
	if open {
		l.start()
		for f := range l.all() {
			l.undecide(f)
		}
	}
}

// Close waits for all goroutines. The Hub's context must have ended.
func (l *Hub) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.loop.Join(&l.running)
}

// CanTrack tells whether a quorum of masters can report changed keys, as far as is known.
func (l *Hub) CanTrack() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	able := 0
	for i, m := range l.masters {
		if !m.Embedded() && !l.changes.masters[i].refused {
			able++
		}
	}
	return able >= quorum.Size(len(l.masters))
}

// start starts the listeners, with mu held.
func (l *Hub) start() {
	if l.listeners != nil || l.closed {
		return
	}
	ctx, end := context.WithCancel(l.ctx)
	l.end = end
	l.next, l.sooner = time.Now(), make(chan struct{}, 1)
	for i, m := range l.masters {
		r := &listener{hub: l, master: m, number: i, wake: make(chan struct{}, 1)}
		l.listeners = append(l.listeners, r)
		l.loop.Spawn(&l.running, func() { stream.Contained(l.log, func() { r.run(ctx) }) })
	}
	l.heard.times = l.copyTimes()
	sooner := l.sooner
	l.loop.Spawn(&l.running, func() { l.watch(ctx, sooner) })
}

// watch calls look when it is due, until ctx ends.
func (l *Hub) watch(ctx context.Context, sooner <-chan struct{}) {
	for ctx.Err() == nil {
		l.mu.Lock()
		next := l.next
		l.mu.Unlock()
		if l.loop.Wait(time.Until(next), sooner, ctx.Done()) == loop.Late {
			stream.Contained(l.log, func() { l.look(ctx) })
		}
	}
}

func (l *Hub) copyTimes() copyTimes {
	return copyTimes{grace: l.timeout(), memory: 4 * l.stall()}
}

// look reports what has waited long enough, and closes what nobody wants.
func (l *Hub) look(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	now := time.Now()
	l.next = now.Add(listenerLinger) // what is due before says so
	l.heard.times = l.copyTimes()    // a reload may change them
	l.heard.settle(now)
	l.bursts.settle(now)
	l.decide()
	l.linger(now)
}

// linger closes what nobody has wanted for long enough, and has look called when more is due.
func (l *Hub) linger(now time.Time) {
	open := false
	for f := range l.all() {
		if f.open && !f.isWanted() {
			if end := f.left.Add(feedLinger); now.Before(end) {
				l.lookBy(end)
			} else {
				l.stop(f, now)
			}
		}
		if f.open && f.from.IsZero() && now.Before(f.patience) {
			l.lookBy(f.patience)
		}
		open = open || f.open
	}
	if !open {
		if end := l.idle.Add(listenerLinger); now.Before(end) {
			l.lookBy(end)
		} else {
			l.end()
			l.listeners = nil
		}
	}
	for _, due := range []func() (time.Time, bool){l.heard.next, l.bursts.next} {
		if at, ok := due(); ok {
			l.lookBy(at)
		}
	}
}

// lookBy makes look run at the given time or before, with mu held.
func (l *Hub) lookBy(at time.Time) {
	if !at.Before(l.next) {
		return
	}
	l.next = at
	select {
	case l.sooner <- struct{}{}:
	default:
	}
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
	if !r.current() || !l.wants(m) {
		return
	}
	l.heard.count(m, r.number, now)
	if at, ok := l.heard.next(); ok {
		l.lookBy(at)
	}
}

// wants tells, with mu held, whether a subscriber wants a message.
func (l *Hub) wants(m message) bool {
	if l.messages.exact[m.channel] != nil {
		return true
	}
	for pattern := range l.messages.loose {
		if resp.GlobMatch(pattern, []byte(m.channel)) {
			return true
		}
	}
	return false
}

// tellMessage hands a message, with mu held, to the subscribers that want it.
func (l *Hub) tellMessage(m message) {
	e := Event{Kind: EventMessage, Channel: []byte(m.channel), Payload: []byte(m.payload)}
	for s := range l.messages.exact[m.channel] {
		s.tell(e)
	}
	e.Kind = EventPatternMessage
	for pattern, subscribers := range l.messages.loose {
		if resp.GlobMatch(pattern, e.Channel) {
			e.Pattern = []byte(pattern)
			for s := range subscribers {
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
		l.bursts.count(keyChange{any: true}, r.number, now)
	}
	for _, key := range keys {
		if l.tracks(key) {
			l.bursts.count(keyChange{key: string(key)}, r.number, now)
		}
	}
	if at, ok := l.bursts.next(); ok {
		l.lookBy(at)
	}
}

// tracks tells, with mu held, whether a subscriber tracks a key. Masters report all keys, so this
// allocates nothing.
func (l *Hub) tracks(key []byte) bool {
	if l.changes.exact[string(key)] != nil {
		return true
	}
	for prefix := range l.changes.loose {
		if len(key) >= len(prefix) && string(key[:len(prefix)]) == prefix {
			return true
		}
	}
	return false
}

// tracking returns, with mu held, the subscribers that track a key.
func (l *Hub) tracking(c keyChange) map[*Subscriber]struct{} {
	if c.any {
		return l.changes.subscribers()
	}
	all := l.changes.exact[c.key]
	for prefix, subscribers := range l.changes.loose {
		if strings.HasPrefix(c.key, prefix) {
			all = maps.Clone(all)
			if all == nil {
				all = map[*Subscriber]struct{}{}
			}
			maps.Copy(all, subscribers)
		}
	}
	return all
}

// tellChange hands a change, with mu held, once to each subscriber that tracks its key.
func (l *Hub) tellChange(c keyChange) {
	e := Event{Kind: EventChanged}
	if !c.any {
		e.Key = []byte(c.key)
	}
	for s := range l.tracking(c) {
		s.tell(e)
	}
}

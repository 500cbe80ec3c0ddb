package ballot

import (
	"sync"
	"time"

	"redlock-proxy/redlock/lane"
	"redlock-proxy/redlock/loop"
	"redlock-proxy/redlock/master"
	"redlock-proxy/redlock/quorum"
)

// A Box holds what all ballots need: the masters, the lanes and the observer. Any
// goroutine may use it.
type Box struct {
	Masters *master.Set
	Lanes   *lane.Lanes[Outcome]

	observer  Observer
	waits     sync.Pool // of *wait
	deadlines *deadlines
	turn      chan struct{} // holds the turn of large questions, unless one is with the masters
}

// New makes a Box for questions to masters. lanes keep the questions about each key in
// order.
func New(masters *master.Set, lanes *lane.Lanes[Outcome], observer Observer) *Box {
	newWait := func() any { return &wait{over: make(chan ending, 2)} }
	x := &Box{Masters: masters, Lanes: lanes, observer: observer, waits: sync.Pool{New: newWait}, deadlines: newDeadlines(masters.Loop()), turn: make(chan struct{}, 1)}
	x.turn <- struct{}{}
	return x
}

// UsualFrames is enough room for the frames of most questions, in bytes.
const UsualFrames = 512

// Small is the most bytes of a question, and about those of an answer, that is not large. Only one large
// question at a time is with the masters, because all others wait behind it on the masters' streams.
const Small = 32 << 10

// Copies returns copies of a key and a value. Small ones are in one piece of memory. A large
// value is not, because lanes and menders may keep the key for longer.
func Copies(key, value []byte) (k, v string) {
	if len(key)+len(value) > UsualFrames {
		return string(key), string(value)
	}
	var room [UsualFrames]byte
	both := string(append(append(room[:0], key...), value...))
	return both[:len(key)], both[len(key):]
}

// usualMasters is the size of most sets of masters. Larger ones cost an allocation.
const usualMasters = 5

// Poll puts q to every master and returns the closed ballot. The frames hold one command
// or more. They are the same for every master unless q has Each, and Poll does not keep
// them.
func Poll[A any](x *Box, frames []byte, q Question[A]) *Ballot[A] {
	if q.Task == nil {
		q.Task = x.Masters.Loop().Running()
	}
	if !x.Masters.IsPrepared(q.DB) {
		q.Task.Leave()
		x.Masters.Prepare(q.DB, q.Left)
	}
	timeout := x.Masters.Limits().MasterTimeout
	about := lane.Question{DB: q.DB, Keys: q.Keys, Creates: q.Creates}
	x.Lanes.AwaitFree(&about, timeout, func(owing quorum.Set) bool {
		wait := x.shouldWait(q.DB, owing)
		if wait {
			q.Task.Leave()
		}
		return wait
	})
	passOn := func() {}
	if q.Large || len(frames) > Small {
		q.Task.Leave()
		if x.Masters.Loop().Wait(loop.Forever, x.turn, q.Left) != 0 {
			return unasked(x, q)
		}
		passOn = sync.OnceFunc(func() { x.turn <- struct{}{} })
	}
	defer passOn() // also if the request panics
	w := x.waits.Get().(*wait)
	now := time.Now()
	b := &Ballot[A]{
		Question: q,
		box:      x,
		masters:  x.Masters.List(), // after now: answers that follow another list do not count before the deadline
		lane:     about,
		Started:  now,
		deadline: now.Add(timeout),
		over:     w.over,
	}
	if n := b.masters.Size(); n <= usualMasters {
		b.Answers = b.few[:n]
	} else {
		b.Answers = make([]quorum.Answer[A], n)
	}
	b.latecomers = b.fewLate[:0]
	ended := false
	defer func() {
		if !ended { // the request has panicked, so what masters granted is taken back
			b.end(NoQuorum)
			b.settle()
		}
	}()
	b.askAll(frames)
	b.await(w)
	x.waits.Put(w)
	passOn() // Keep may ask a large question, too
	switch {
	case b.Verdict != Won || b.Keeper == nil:
	case b.Keeper.Keep(b):
		b.end(Won)
	default:
		b.end(Lost)
	}
	b.settle()
	if b.Verdict != Won {
		b.voting = b.CountVoting() // also if lost: the caller may turn that into NoQuorum
	}
	ended = true
	x.observer.Decided(q.Kind, b.Verdict, time.Since(b.Started))
	return b
}

// unasked is the ballot of a question that was put to nobody.
func unasked[A any](x *Box, q Question[A]) *Ballot[A] {
	masters := x.Masters.List()
	b := &Ballot[A]{Question: q, box: x, masters: masters, Started: time.Now(), Answers: make([]quorum.Answer[A], masters.Size()), Verdict: NoQuorum}
	for i := range b.Answers {
		b.Answers[i].State = quorum.Unasked
	}
	return b
}

// shouldWait tells whether it is worthwhile to wait for the masters that owe an answer:
// without them too few masters can be asked, but with them enough.
func (x *Box) shouldWait(db int, owing quorum.Set) bool {
	if owing == 0 {
		return false
	}
	masters := x.Masters.List()
	serving := masters.Serving(db)
	return (serving&^owing).Len() < masters.Needed() && serving.Len() >= masters.Needed()
}

// InTime returns v, but Lost if a win came so late that no validity of the TTL is left.
func (x *Box) InTime(v Verdict, ttl, elapsed time.Duration) Verdict {
	if v == Won && x.Validity(ttl, elapsed) <= 0 {
		return Lost
	}
	return v
}

// Validity is the time for which a caller may still rely on a lock of this TTL. The
// published algorithm calls it MIN_VALIDITY. 2 ms are for Redis's own precision.
func (x *Box) Validity(ttl, elapsed time.Duration) time.Duration {
	return validity(ttl, elapsed, x.Masters.Limits().ClockDrift)
}

func validity(ttl, elapsed time.Duration, drift float64) time.Duration {
	return ttl - elapsed - time.Duration(float64(ttl)*drift) - 2*time.Millisecond
}

// LeastTTL is the shortest TTL, in whole milliseconds, of which any validity is left if the masters
// answer at once. drift is at most 0.5.
func LeastTTL(drift float64) time.Duration {
	ttl := time.Millisecond
	for validity(ttl, 0, drift) <= 0 {
		ttl += time.Millisecond
	}
	return ttl
}

// Undone tells the Observer that a grant was queued to be undone. It does not mention
// a Discounted grant, which never counted because its master may not vote.
func (x *Box) Undone(master int, state quorum.State) {
	if state != quorum.Discounted {
		x.observer.Undone(x.Masters.At(master).Name())
	}
}

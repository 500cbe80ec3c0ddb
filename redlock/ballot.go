package redlock

import (
	"sync"
	"time"

	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/roster"
	"redlock-proxy/redlock/stream"
)

// A question is what one ballot puts to every master. A is what a master's
// replies are read as.
type question[A any] struct {
	kind    Kind
	db      int
	each    func(master int) []byte // if set, the frames for each master; nil bytes: it is not asked
	guard   *guard[A]               // if set, what each master is asked before
	replies int
	keys    []string          // what it may write: ballots on a key are queued on all streams in one order
	creates bool              // it may create or extend a lock under them
	load    []stream.Loadable // scripts the masters must know for it
	lives   time.Duration     // the longest TTL it may give, as markers have it; 0: none, or not known before

	// counts tells which answers count although their master may have forgotten
	// locks: those that say what is there, not what is not. Nil: none do.
	counts func(A) bool

	// parse reads a master's replies and copies what it keeps of them. With
	// errUnable the master could not serve the question, which counts as no
	// answer; with any other error its connection cannot be trusted any more.
	parse func(replies [][]byte) (A, error)
	// vote is how an answer is shown to the Observer.
	vote func(A) Vote
	// decide is the verdict on the answers so far. It is pure; elapsed counts
	// from before the first byte was sent.
	decide func(answers []quorum.Answer[A], elapsed time.Duration) Verdict
	// late hears of answers that came after the verdict, on the stream's reader.
	late func(b *ballot[A], master int, a quorum.Answer[A], verdict Verdict)
	// keep, if set, is asked when the ballot was won, and says whether it stays
	// so; until then late answers wait.
	keep func(b *ballot[A]) bool
	// debt is what stays owed to a master whose connection breaks unanswered, or
	// that answers that it cannot serve; with owedToAbsent also to one that cannot
	// be asked now. It must not block.
	debt         func(master int) *stream.Debt
	owedToAbsent bool
}

// ballot is one question put to every master at the same moment. The verdict
// is given as soon as it is certain; slower masters are never waited for, and
// their late answers are still heard.
type ballot[A any] struct {
	question[A]
	locker   *Locker
	started  time.Time
	deadline time.Time

	owing  owing // what masters owe to it; empty if the question creates nothing
	asked  int   // how many masters were asked, or passed over: those from the first up
	spared bool  // masters that owe an answer about the keys were passed over

	mu      sync.Mutex
	answers []quorum.Answer[A]
	verdict Verdict // Pending until closed; answers do not change afterwards
	closed  chan<- struct{}
	// latecomers came while the verdict was Won and not yet known to be kept.
	latecomers []latecomer[A]
	confirmed  bool
	expired    bool // the verdict came with the deadline
	voting     int  // how many masters could vote then, if it was not won
}

type latecomer[A any] struct {
	master int
	answer quorum.Answer[A]
}

// usualFrames is room for the frames of most questions.
const usualFrames = 512

// A wait is for a ballot's end. It is used for one ballot after the other.
type wait struct {
	closed  chan struct{} // has room for one
	timeout *time.Timer
}

func newWait() any { return &wait{make(chan struct{}, 1), time.NewTimer(time.Hour)} }

// hold puts q to every master and returns the closed ballot. The frames, one
// command or more, are the same for every master and not kept.
func hold[A any](l *Locker, frames []byte, q question[A]) *ballot[A] {
	l.prepare(q.db)
	if q.creates {
		l.owed.await(l, q.db, q.keys)
	}
	w := l.waits.Get().(*wait)
	now := time.Now()
	b := &ballot[A]{
		question: q,
		locker:   l,
		started:  now,
		deadline: now.Add(l.settings().MasterTimeout),
		answers:  make([]quorum.Answer[A], len(l.masters)),
		closed:   w.closed,
	}
	ended := false
	defer func() {
		if !ended {
			b.abandon()
		}
	}()
	b.askAll(frames)
	b.await(w)
	l.waits.Put(w)
	switch {
	case b.verdict != Won || b.keep == nil:
		b.settle()
	case b.keep(b):
		b.confirm()
	default:
		b.revoke()
	}
	if b.verdict != Won {
		b.voting = b.countVoting() // also where it is lost: that may turn out to tell nothing
	}
	ended = true
	l.observer.Decided(q.kind, b.verdict, time.Since(b.started))
	return b
}

// askAll puts the question to every master that is free to be asked.
func (b *ballot[A]) askAll(frames []byte) {
	l := b.locker
	free := l.all()
	if b.creates {
		b.owing = l.owed.claim(b.db, b.keys, free)
		free = b.owing.masters
		b.spared = free != l.all()
	}
	ordered := l.order.lock(b.db, b.keys)
	defer l.order.unlock(ordered)
	if b.creates {
		l.creations.note(b.db, b.keys)
	}
	for i, m := range l.masters {
		b.ask(i, m.stream(b.db).Stream, frames, free.has(i))
		b.asked++
	}
}

// await returns when the ballot is closed, by its deadline at the latest.
func (b *ballot[A]) await(w *wait) {
	w.timeout.Reset(time.Until(b.deadline))
	defer w.timeout.Stop()
	select {
	case <-w.closed:
	case <-w.timeout.C:
		b.expire()
		<-w.closed
	}
}

// abandon ends a ballot whose request has panicked. It comes to nothing: what
// masters granted is taken back, and they owe it nothing that they have answered.
func (b *ballot[A]) abandon() {
	b.closeUndecided()
	defer b.settle()
	for i := range b.answers {
		if a := b.answers[i]; b.late != nil && a.State != quorum.Awaited {
			b.late(b, i, a, NoQuorum)
		}
	}
}

// closeUndecided closes a ballot without asking for its verdict. Masters that
// were not asked any more will not answer.
func (b *ballot[A]) closeUndecided() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.verdict, b.confirmed = NoQuorum, true
	b.addLatecomers()
	for i := b.asked; i < len(b.answers); i++ {
		if b.answers[i].State == quorum.Awaited {
			b.answers[i].State = quorum.Unasked
		}
	}
}

// addLatecomers, with mu held, makes answers of those that waited.
func (b *ballot[A]) addLatecomers() {
	for _, l := range b.latecomers {
		b.answers[l.master] = l.answer
	}
	b.latecomers = nil
}

// ask puts the question to one master, unless that owes an answer and so is not free.
func (b *ballot[A]) ask(i int, s *stream.Stream, frames []byte, free bool) {
	switch {
	case !free:
		s.GiveUpIfStalled(b.started)
		frames = nil
	case b.each != nil:
		frames = b.each(i)
	}
	if frames == nil {
		b.cast(i, quorum.Answer[A]{State: quorum.Unasked})
		return
	}
	c := stream.Call{Replies: b.replies, Asker: b, Master: i}
	if b.creates {
		c.Writes = b.keys
	}
	if !b.put(s, c, frames) {
		if b.owedToAbsent {
			s.Owe(b.debt(i))
		}
		b.cast(i, quorum.Answer[A]{State: quorum.Unasked})
	}
}

// put sends the question to one master, or its guard first.
func (b *ballot[A]) put(s *stream.Stream, c stream.Call, frames []byte) bool {
	if b.guard != nil {
		return b.askGuarded(s, c, frames)
	}
	return s.Send(c, stream.Sending{Frames: frames, Load: b.load, Creates: b.creates, Lives: b.lives}, b.started)
}

// owed is what the master must still be told if the connection breaks.
func (b *ballot[A]) Owed(c *stream.Call) *stream.Debt {
	if b.debt == nil {
		return nil
	}
	return b.debt(c.Master)
}

// answered makes of a master's replies its part in the ballot.
func (b *ballot[A]) Answered(s *stream.Stream, c *stream.Call, replies [][]byte, j stream.Judgement, err error) {
	b.hear(s, c, replies, j, err, b.parse)
}

func (b *ballot[A]) hear(s *stream.Stream, c *stream.Call, replies [][]byte, j stream.Judgement, err error, read func([][]byte) (A, error)) {
	a := quorum.Answer[A]{State: quorum.Unknown} // also where reading it panics
	defer func() { b.cast(c.Master, a) }()
	switch {
	case err == stream.ErrUnsent:
		a.State = quorum.Unasked
		return
	case err != nil:
		return
	}
	value, err := read(replies)
	a.Value, a.LongestTTL = value, j.Covers
	switch {
	case err == nil && (!j.Votes || j.Covers < b.lives) && (b.counts == nil || !b.counts(value)):
		a.State = quorum.Discounted
	case err == nil:
		a.State = quorum.Answered
	case err != errBlind:
		a.State = quorum.Unable
	}
	if err != nil && b.debt != nil {
		s.Owe(b.debt(c.Master))
	}
	switch err {
	case nil:
	case errNotServed:
		b.locker.masters[c.Master].tellForbidden(replies)
		s.Doubt(replies[len(replies)-1])
	case errUnable, errBlind:
		b.locker.masters[c.Master].tellForbidden(replies)
	case errNoScript:
		s.ForgetScripts()
	default:
		s.GiveUp(err)
	}
}

// cast counts an answer, or hands a late one on. An answer read after the
// deadline is late even if the ballot is still open: we may have been paused.
func (b *ballot[A]) cast(i int, a quorum.Answer[A]) {
	now := time.Now()
	defer b.enter(i, a, now) // also where its being told panics
	vote := Failed
	switch a.State {
	case quorum.Answered:
		vote = b.vote(a.Value)
	case quorum.Discounted:
		vote = Discounted
	}
	b.locker.observer.Voted(b.locker.masters[i].name(), vote, now.Sub(b.started))
}

// enter makes a master's answer part of the ballot, or hands it on as a late one.
func (b *ballot[A]) enter(i int, a quorum.Answer[A], now time.Time) {
	verdict, late := b.count(i, a, now)
	if !late {
		return
	}
	if b.creates {
		defer b.locker.owed.settle(&b.owing, 1<<i) // after the undo was queued
	}
	if b.late != nil {
		b.late(b, i, a, verdict)
	}
}

// count takes an answer into the ballot while that is open. Late: it came after
// the verdict, and is not kept until it is known whether that stays.
func (b *ballot[A]) count(i int, a quorum.Answer[A], now time.Time) (verdict Verdict, late bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.verdict == Pending && now.After(b.deadline) {
		b.close(now)
	}
	switch {
	case b.verdict == Pending:
		b.answers[i] = a
		if v := b.decide(b.answers, elapsed(b.started, now)); v != Pending {
			b.verdict = v
			b.closed <- struct{}{}
		}
		return Pending, false
	case b.verdict == Won && b.keep != nil && !b.confirmed:
		b.latecomers = append(b.latecomers, latecomer[A]{i, a})
		return Won, false
	}
	return b.verdict, true
}

// outcome words a closed ballot's verdict.
func (b *ballot[A]) outcome() Outcome {
	o := Outcome{Verdict: b.verdict, Asked: len(b.answers), Needed: quorum.Size(len(b.answers)), Voting: b.voting}
	for _, a := range b.answers {
		if a.State == quorum.Answered || a.State == quorum.Awaited && !b.expired {
			o.Answered++ // or would have, had the verdict needed it
		}
	}
	if b.verdict == NoQuorum {
		b.locker.voters.do(func(r *roster.Roster) {
			o.Quarantined, o.Until = r.Quarantined(b.db, time.Now())
			o.NewUntil = r.NewUntil(time.Now())
		})
		o.Answered = min(o.Answered, len(b.answers)-o.Quarantined)
	}
	return o
}

// countVoting counts the masters that can vote now. Who answered this question that
// it cannot serve, or left it unanswered to the deadline, cannot, whatever else
// is known of it yet.
func (b *ballot[A]) countVoting() (n int) {
	now, certified := time.Now(), b.locker.certifiedIn(b.db)
	for i, a := range b.answers {
		dumb := a.State == quorum.Unable || a.State == quorum.Awaited && b.expired || b.locker.masters[i].stream(b.db).Silent(now)
		if certified.has(i) && !dumb {
			n++
		}
	}
	return n
}

// elapsed is the time since a ballot began. The monotonic clock stands still
// while a machine is suspended and the wall clock may be set, so the later of
// the two is believed.
func elapsed(began, now time.Time) time.Duration {
	return max(now.Sub(began), now.Round(0).Sub(began.Round(0)))
}

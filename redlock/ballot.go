package redlock

import (
	"errors"
	"sync"
	"time"
)

// A question is what one ballot puts to every master. A is what a master's
// replies are read as.
type question[A any] struct {
	kind    Kind
	db      int
	frames  []byte                  // one command or more, the same for every master...
	each    func(master int) []byte // ...or, if set, another for each; nil bytes: this master is not asked
	replies int
	keys    [][]byte      // what it may write: ballots on a key are queued on all streams in one order
	creates bool          // it may create or extend a lock under them
	load    []loadable    // scripts the masters must know for it
	lives   time.Duration // the longest TTL it may give, as markers have it; 0: none, or not known before

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
	decide func(answers []answer[A], elapsed time.Duration) Verdict
	// late hears of answers that came after the verdict, on the stream's reader.
	late func(b *ballot[A], master int, a answer[A], verdict Verdict)
	// revocable: whoever holds the ballot calls confirm or revoke when it was
	// won, and until then late answers wait.
	revocable bool
	// debt is what stays owed to a master whose connection breaks unanswered,
	// or that cannot be asked now.
	debt func(master int) *debt
}

// answer is one master's part in a ballot.
type answer[A any] struct {
	state answerState
	value A
	st    standing // of the batch it came in
}

type answerState uint8

const (
	pending    answerState = iota
	unasked                // it was not asked, or certainly did not hear the question
	unknown                // it was asked and will not answer: it may have executed the question
	unable                 // it answered that it cannot serve
	discounted             // it answered, but may have forgotten locks or is no member of the set
	answered
)

// errUnable: the master answered, but that it cannot serve now.
var errUnable = errors.New("the master cannot serve now")

// errBlind: as errUnable, but what it did nevertheless is not known.
var errBlind = errors.New("the master cannot serve now, and does not tell what it did")

// errNoScript: it does not know a script any more that this stream had loaded.
var errNoScript = errors.New("the master has forgotten a script")

// errMisread: the master's answer is none to what it was asked.
var errMisread = errors.New("the master's reply does not fit what it was asked")

// readAs turns what a reply reads as into the error parse returns.
func readAs(reply []byte, fits bool) error {
	switch {
	case failedReply(reply):
		return errUnable
	case !fits:
		return errMisread
	}
	return nil
}

// failed: it is no vote.
func (s answerState) failed() bool {
	return s == unasked || s == unknown || s == unable || s == discounted
}

// heard: its value is known, whether it is a vote or not.
func (s answerState) heard() bool { return s == answered || s == discounted }

// ballot is one question put to every master at the same moment. The verdict
// is given as soon as it is certain; slower masters are never waited for, and
// their late answers are still heard.
type ballot[A any] struct {
	question[A]
	locker   *Locker
	started  time.Time
	deadline time.Time

	owings []owing // by master; nil if the question creates nothing

	mu      sync.Mutex
	answers []answer[A]
	verdict Verdict // Pending until closed; answers do not change afterwards
	closed  chan struct{}
	// latecomers came while the verdict was Won and neither confirmed nor revoked.
	latecomers []latecomer[A]
	confirmed  bool
	expired    bool // the verdict came with the deadline
}

type latecomer[A any] struct {
	master int
	answer answer[A]
}

// hold puts q to every master and returns the closed ballot.
func hold[A any](l *Locker, q question[A]) *ballot[A] {
	l.prepare(q.db)
	var keys []string
	if q.creates {
		for _, key := range q.keys {
			keys = append(keys, string(key))
		}
		l.owed.await(l, q.db, keys)
	}
	now := time.Now()
	b := &ballot[A]{
		question: q,
		locker:   l,
		started:  now,
		deadline: now.Add(l.settings().MasterTimeout),
		answers:  make([]answer[A], len(l.masters)),
		closed:   make(chan struct{}),
	}
	if q.creates {
		b.owings = make([]owing, len(l.masters))
		for i, m := range l.masters {
			b.owings[i] = owing{owed: &l.owed, stream: m.stream(q.db), keys: keys}
		}
	}
	ordered := l.order.lock(q.db, q.keys)
	for i, m := range l.masters {
		b.ask(i, m.stream(q.db))
	}
	l.order.unlock(ordered)
	timer := l.timers.Get().(*time.Timer)
	timer.Reset(time.Until(b.deadline))
	select {
	case <-b.closed:
	case <-timer.C:
		b.expire()
	}
	timer.Stop()
	l.timers.Put(timer)
	b.settleWon()
	l.observer.Decided(q.kind, b.verdict, time.Since(b.started))
	return b
}

func (b *ballot[A]) ask(i int, s *stream) {
	frames := b.frames
	if b.each != nil {
		frames = b.each(i)
	}
	if frames == nil {
		b.cast(i, answer[A]{state: unasked})
		return
	}
	c := call{replies: b.replies, load: b.load, lives: b.lives, asker: b, master: i}
	if b.debt != nil {
		c.debt = b.debt(i)
	}
	if b.owings != nil {
		c.owing = &b.owings[i]
	}
	if !s.send(c, frames, b.started) {
		if c.debt != nil {
			s.owe(c.debt)
		}
		b.cast(i, answer[A]{state: unasked})
	}
}

// answered makes of a master's replies its part in the ballot.
func (b *ballot[A]) answered(s *stream, c *call, replies [][]byte, st standing, err error) {
	switch {
	case err == errUnsent:
		b.cast(c.master, answer[A]{state: unasked})
		return
	case err != nil:
		b.cast(c.master, answer[A]{state: unknown})
		return
	}
	value, err := b.parse(replies)
	state := answered
	switch {
	case err == nil && (st.state != Certified || st.longest < b.lives) && (b.counts == nil || !b.counts(value)):
		state = discounted
	case err == errBlind:
		state = unknown
	case err != nil:
		state = unable
	}
	if err != nil && c.debt != nil {
		s.owe(c.debt)
	}
	switch err {
	case nil:
	case errUnable, errBlind:
		s.master.tellForbidden(replies)
	case errNoScript:
		s.forgetScripts()
	default:
		s.giveUp(err)
	}
	b.cast(c.master, answer[A]{state: state, value: value, st: st})
}

// cast counts an answer, or hands a late one on. An answer read after the
// deadline is late even if the ballot is still open: we may have been paused.
func (b *ballot[A]) cast(i int, a answer[A]) {
	now := time.Now()
	vote := Failed
	if a.state == answered {
		vote = b.vote(a.value)
	}
	b.locker.observer.Voted(b.locker.masters[i].name(), vote, now.Sub(b.started))
	b.mu.Lock()
	if b.verdict == Pending && now.After(b.deadline) {
		b.close(now)
	}
	if b.verdict == Pending {
		// An undo, if it comes to that, is queued while this request still has
		// its turn.
		b.settle(i)
		b.answers[i] = a
		if v := b.decide(b.answers, elapsed(b.started, now)); v != Pending {
			b.verdict = v
			close(b.closed)
		}
		b.mu.Unlock()
		return
	}
	verdict := b.verdict
	if verdict == Won && b.revocable && !b.confirmed {
		b.latecomers = append(b.latecomers, latecomer[A]{i, a})
		b.mu.Unlock()
		return
	}
	b.mu.Unlock()
	if b.late != nil {
		b.late(b, i, a, verdict)
	}
	b.settle(i) // after the undo was queued
}

func (b *ballot[A]) settle(i int) {
	if b.owings != nil {
		b.owings[i].settle()
	}
}

// settleWon forgets what masters still owe to a won ballot: their late grants
// are part of the lock and will not be undone.
func (b *ballot[A]) settleWon() {
	if b.verdict == Won {
		for i := range b.owings {
			b.settle(i)
		}
	}
}

// expire closes the ballot at its deadline and gives up connections that have
// been silent for too long.
func (b *ballot[A]) expire() {
	now := time.Now()
	b.mu.Lock()
	if b.verdict == Pending {
		b.close(now)
	}
	b.mu.Unlock()
	for i := range b.answers {
		if b.answers[i].state == pending {
			b.locker.masters[i].stream(b.db).giveUpIfStalled(now)
		}
	}
}

// close, with mu held, gives the verdict without the answers still missing.
// They stay marked pending: whoever answers late is told of the verdict.
func (b *ballot[A]) close(now time.Time) {
	b.expired = true
	final := make([]answer[A], len(b.answers))
	copy(final, b.answers)
	for i := range final {
		if final[i].state == pending {
			final[i].state = unknown
		}
	}
	if b.verdict = b.decide(final, elapsed(b.started, now)); b.verdict == Pending {
		panic("redlock: a ballot without missing votes has no verdict")
	}
	close(b.closed)
}

// revoke turns a ballot that was won into a lost one: late answers are told so,
// and those that came in between are answers now.
// The caller takes back what the others granted.
func (b *ballot[A]) revoke() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.verdict, b.confirmed = Lost, true
	for _, l := range b.latecomers {
		b.answers[l.master] = l.answer
	}
	b.latecomers = nil
}

// confirm says that a ballot that was won stays so.
func (b *ballot[A]) confirm() {
	b.mu.Lock()
	latecomers := b.latecomers
	b.latecomers, b.confirmed = nil, true
	b.mu.Unlock()
	for _, l := range latecomers {
		if b.late != nil {
			b.late(b, l.master, l.answer, Won)
		}
	}
}

// count tallies answers, granted being those for which grants is true.
func count[A any](answers []answer[A], grants func(A) bool) tally {
	t := tally{masters: len(answers)}
	for _, a := range answers {
		switch {
		case a.state.failed():
			t.failed++
		case a.state == answered && grants(a.value):
			t.granted++
		case a.state == answered:
			t.refused++
		}
	}
	return t
}

// outcome words a closed ballot's verdict.
func (b *ballot[A]) outcome() Outcome {
	o := Outcome{Verdict: b.verdict, Asked: len(b.answers), Needed: quorum(len(b.answers))}
	for _, a := range b.answers {
		if a.state == answered || a.state == pending && !b.expired {
			o.Answered++ // or would have, had the verdict needed it
		}
	}
	if b.verdict == NoQuorum {
		o.Quarantined, o.Until = b.locker.roster.quarantined(b.db)
		o.Answered = min(o.Answered, len(b.answers)-o.Quarantined)
	}
	return o
}

// elapsed is the time since a ballot began. The monotonic clock stands still
// while a machine is suspended and the wall clock may be set, so the later of
// the two is believed.
func elapsed(began, now time.Time) time.Duration {
	return max(now.Sub(began), now.Round(0).Sub(began.Round(0)))
}

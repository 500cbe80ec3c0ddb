package ballot

import (
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/redlock/lane"
	"redlock-proxy/redlock/master"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/stream"
)

// Ballot is one question put to every master at the same moment. Its verdict is given as
// soon as it is certain. Slower masters are never waited for, but their late answers are
// still used.
type Ballot[A any] struct {
	Question[A]
	Started time.Time
	Spared  bool // masters that owe an answer about the keys were not asked
	// Answers and Verdict are final once Poll has returned.
	Answers []quorum.Answer[A] // by master
	Verdict Verdict            // Pending until closed

	box      *Box
	masters  *master.List // those of its beginning
	deadline time.Time
	lane     lane.Question
	asked    quorum.Set   // the masters that it was sent to
	tooLong  atomic.Int32 // the number of replies that were dropped

	mu   sync.Mutex // guards all below, and Answers and Verdict until closed
	over chan<- ending
	// latecomers came while the verdict was Won and Keep had not returned.
	latecomers []latecomer[A]
	confirmed  bool // late answers wait no more
	expired    bool // the verdict came with the deadline
	voting     int  // the number of masters that could vote at the end, if it was not won

	few     [usualMasters]quorum.Answer[A] // room for Answers
	fewLate [usualMasters / 2]latecomer[A] // room for latecomers
}

type latecomer[A any] struct {
	master int
	answer quorum.Answer[A]
}

// askAll puts the question to every master that owes no answer about the keys.
func (b *Ballot[A]) askAll(frames []byte) {
	all := b.masters.All()
	b.box.Lanes.Send(&b.lane, all, func(free quorum.Set) {
		b.Spared = free != all
		for i := range b.Answers {
			if free.Has(i) && b.ask(i, b.masters.At(i).Stream(b.DB), frames) {
				b.asked |= 1 << i
			}
		}
	})
	for i := range b.Answers {
		if !b.asked.Has(i) {
			b.cast(i, quorum.Answer[A]{State: quorum.Unasked}, time.Now())
		}
	}
}

// await returns when the ballot is closed, at the latest by its deadline.
func (b *Ballot[A]) await(w *wait) {
	b.box.deadlines.add(w, b.deadline, b.Task)
	defer b.box.deadlines.remove(w)
	if w.receive(b.Task) == overdue {
		b.expire()
		w.receive(b.Task)
	}
}

// end sets the verdict without Decide. The Settler gets answers with this verdict from now on.
// Answers that waited for Keep become part of Answers. Masters that were not asked will
// not answer.
func (b *Ballot[A]) end(verdict Verdict) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Verdict, b.confirmed = verdict, true
	for _, l := range b.latecomers {
		b.Answers[l.master] = l.answer
	}
	b.latecomers = nil
	for i := range b.Answers {
		if b.Answers[i].State == quorum.Awaited && !b.asked.Has(i) {
			b.Answers[i].State = quorum.Unasked
		}
	}
}

// ask puts the question to one master. It returns false if the master is not asked.
func (b *Ballot[A]) ask(i int, s *stream.Stream, frames []byte) bool {
	if b.Each != nil {
		frames = b.Each(i)
	}
	if frames == nil {
		return false
	}
	c := stream.Call{Replies: b.Replies, Asker: b, Master: i}
	if b.Creates {
		c.Writes = b.Keys
	}
	if b.put(s, c, frames) {
		return true
	}
	if b.OwedToAbsent {
		s.Owe(b.Debt)
	}
	return false
}

// put sends the question to one master, or its guard first.
func (b *Ballot[A]) put(s *stream.Stream, c stream.Call, frames []byte) bool {
	if b.Guard != nil {
		return b.askGuarded(s, c, frames)
	}
	return s.Send(c, stream.Sending{Frames: frames, Load: b.Load, Creates: b.Creates, Lives: b.TTL}, b.Started)
}

// Owed returns what the master must still be told if the connection breaks.
func (b *Ballot[A]) Owed(*stream.Call) *stream.Debt {
	return b.Debt
}

// Answered turns a master's replies into its answer to the ballot.
func (b *Ballot[A]) Answered(s *stream.Stream, c *stream.Call, replies [][]byte, j stream.Judgement, err error) {
	b.hear(s, c, replies, j, err, b.Parse)
}

func (b *Ballot[A]) hear(s *stream.Stream, c *stream.Call, replies [][]byte, j stream.Judgement, err error, read func([][]byte) (A, error)) {
	a := quorum.Answer[A]{State: quorum.Unknown} // also if read panics
	at := j.Received
	if at.IsZero() {
		at = time.Now() // nothing was received
	}
	defer func() { b.cast(c.Master, a, at) }()
	switch {
	case err == stream.ErrUnsent:
		a.State = quorum.Unasked
		return
	case err == stream.ErrTooLong:
		b.tooLong.Add(1)
		return
	case err != nil:
		return
	}
	value, err := read(replies)
	a.Value, a.LongestTTL = value, j.Covers
	switch {
	case err == nil && (!b.counts(j) || j.Covers < b.TTL) && (b.Counts == nil || !b.Counts(value)):
		a.State = quorum.Discounted
	case err == nil:
		a.State = quorum.Answered
	case err != ErrBlind:
		a.State = quorum.Unable
	}
	if err != nil && err != ErrNoScript && b.Debt != nil {
		s.Owe(b.Debt)
	}
	switch err {
	case nil:
	case ErrUnable, ErrBlind:
		b.masters.At(c.Master).LogRefusal(replies)
	case ErrNoScript:
		s.ForgetScripts()
	default:
		s.GiveUp(err)
	}
}

// counts tells whether a judgement lets an answer count. Votes by another number of masters may
// not be added to those of this ballot.
func (b *Ballot[A]) counts(j stream.Judgement) bool {
	return j.Votes && (j.Masters == 0 || j.Masters == len(b.Answers))
}

// cast counts an answer, or hands a late one on. An answer read after the deadline is
// late even if the ballot is still open, because this process may have been paused. So at
// must not be before the answer was read. It is the same for a whole batch of answers.
func (b *Ballot[A]) cast(i int, a quorum.Answer[A], at time.Time) {
	defer b.enter(i, a, at) // also if Vote panics
	vote := Failed
	switch a.State {
	case quorum.Answered:
		vote = b.Vote(a.Value)
	case quorum.Discounted:
		vote = Discounted
	}
	b.box.observer.Voted(b.masters.At(i).Name(), vote, at.Sub(b.Started), at)
}

// enter makes a master's answer part of the ballot, or gives it to the Settler.
func (b *Ballot[A]) enter(i int, a quorum.Answer[A], now time.Time) {
	verdict, late := b.count(i, a, now)
	if !late {
		return
	}
	defer b.box.Lanes.Settle(&b.lane, 1<<i) // after the undo was queued
	if b.Settler != nil {
		b.Settler.Settle(b, i, a, verdict)
	}
}

// count takes an answer into the ballot while the ballot is open. late is true if the
// answer came after a verdict that cannot change any more. While Keep has not returned,
// count stores the answer among the latecomers.
func (b *Ballot[A]) count(i int, a quorum.Answer[A], now time.Time) (verdict Verdict, late bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Verdict == Pending && now.After(b.deadline) {
		b.close(now)
	}
	switch {
	case b.Verdict == Pending:
		b.Answers[i] = a
		if v := b.decide(b.Answers, now); v != Pending {
			b.Verdict = v
			b.tellOver()
		}
		return Pending, false
	case b.Verdict == Won && b.Keeper != nil && !b.confirmed:
		b.latecomers = append(b.latecomers, latecomer[A]{i, a})
		return Won, false
	}
	return b.Verdict, true
}

// decide is the verdict on answers that were read by a time. A batch of answers may have waited
// since then, so the validity of what is won counts from now on.
func (b *Ballot[A]) decide(answers []quorum.Answer[A], read time.Time) Verdict {
	v := b.decideAfter(answers, b.Elapsed(read))
	if v == Won {
		v = b.decideAfter(answers, b.Elapsed(time.Now()))
	}
	return v
}

func (b *Ballot[A]) decideAfter(answers []quorum.Answer[A], elapsed time.Duration) Verdict {
	v := b.Decide(answers, elapsed)
	if b.Gives > 0 {
		v = b.box.InTime(v, b.Gives, elapsed)
	}
	return v
}

// Outcome returns what a closed ballot came to. The caller fills in the fields that
// depend on the command.
func (b *Ballot[A]) Outcome() Outcome {
	o := Outcome{Verdict: b.Verdict, Since: b.Started, Asked: len(b.Answers), Needed: quorum.Size(len(b.Answers)), Voting: b.voting, TooLong: int(b.tooLong.Load())}
	for _, a := range b.Answers {
		switch {
		case a.State == quorum.Answered, a.State == quorum.Awaited && !b.expired:
			o.Answered++ // an awaited one had time left, but was not needed
		case a.State == quorum.Unable:
			o.Unable++
		case a.State == quorum.Unasked:
			o.Unasked++
		}
	}
	if b.Verdict == NoQuorum {
		o.Quarantined, o.Until, o.NewUntil = b.box.Masters.Quarantined(b.DB, time.Now())
		o.Answered = min(o.Answered, len(b.Answers)-o.Quarantined)
		o.Overtaken = b.box.Masters.HasLearned(b.Started.Add(b.Started.Sub(b.deadline)))
	}
	return o
}

// CountVoting counts the masters that can vote now. A master that could not serve this
// question, or did not answer it before the deadline, cannot vote, even if nothing else
// shows that yet.
func (b *Ballot[A]) CountVoting() (n int) {
	voting := b.box.Masters.Voting(b.DB)
	for i, a := range b.Answers {
		failed := a.State == quorum.Unable || a.State == quorum.Awaited && b.expired
		if voting.Has(i) && !failed {
			n++
		}
	}
	return n
}

// Elapsed is the time since the ballot began, by the monotonic clock or the wall clock,
// whichever says more. The first stops while a machine is suspended, and the second may
// be set.
func (b *Ballot[A]) Elapsed(now time.Time) time.Duration {
	return max(now.Sub(b.Started), now.Round(0).Sub(b.Started.Round(0)))
}

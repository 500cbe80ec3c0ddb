package redlock

import (
	"bytes"
	"cmp"
	"context"
	"sync"
	"time"

	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/lane"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/rdb"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/stream"
)

// ReleaseRequest deletes a key whatever its value is: DEL, UNLINK, GETDEL.
type ReleaseRequest struct {
	DB  int
	Key []byte
	Get bool // the client wants the value, so a key that is no string is an error
	// Value, if set, is the only one that is deleted, in one ballot. A lock that ends after
	// Until, if given, is another one, and stays. Masters that are away get it later.
	Value []byte
	Until time.Time
}

// Release deletes the key, in two ballots. The first looks at what a quorum holds, or
// could hold if masters that did not answer or may not vote agreed. The second deletes
// only that. A bare DEL never goes to a master, because it would erase the votes of a
// client that is just acquiring. Won: Value is what was deleted. Lost: the key did not
// exist.
func (l *Locker) Release(ctx context.Context, r ReleaseRequest) Outcome {
	if r.Value != nil {
		return l.releaseValue(r.DB, r.Key, r.Value, stream.NewLifetime(r.Until), r.limit(l.settings().MasterTimeout))
	}
	unclear, looks := false, &looks{}
	o := l.settings().Retry.Again(ctx, false, func() (o Outcome) {
		if o, unclear = l.release(r, looks, nil); looks.missed {
			turn, err := l.lanes.Enter(ctx, r.DB, []string{string(r.Key)}, lane.Queueing{Next: true})
			if err != nil {
				return o // the client has gone
			}
			defer turn.Leave() // no request of this process comes between the look and the deletion
			o, unclear = l.release(r, looks, nil)
		}
		return o
	})
	if unclear {
		if quiet := l.mender.Mend(r.DB, string(r.Key)).Wait(ctx); quiet != nil {
			o, _ = l.release(r, looks, quiet)
		}
	}
	return o
}

// limit is the longest time, in ms, that is left of a lock which ends by Until on each master.
func (r ReleaseRequest) limit(skew time.Duration) int64 {
	if r.Until.IsZero() {
		return stream.AnyLifetime
	}
	return max(0, time.Until(r.Until.Add(skew)).Milliseconds()) + resp.ExpiryTolerance
}

// release deletes each value that could be held, and that was there when the request came.
// Another client may have taken the lock since. unclear is true if there are several such
// values, or none although the key exists, and they are not those of the quiet copies.
// Then they may be votes of a client that is just acquiring.
func (l *Locker) release(r ReleaseRequest, looks *looks, quiet []effect.Image) (o Outcome, unclear bool) {
	b := l.look(r, looks)
	o = b.Outcome()
	if b.Verdict == Lost {
		return o, false
	}
	o.Verdict = NoQuorum
	if heardFrom(b.Answers) < o.Needed {
		return o, false
	}
	values := looks.deletable(b.Answers, quiet)
	if len(values) != 1 && !areQuiet(b.Answers, quiet) {
		return o, b.Verdict != Won
	}
	var all []Outcome
	for _, seen := range values {
		switch {
		case seen.err != "" && r.Get:
			o.Verdict, o.Err = b.Verdict, seen.err
			return o, false
		case seen.err != "":
			all = append(all, l.releaseCollection(r))
		default:
			released := l.releaseValue(r.DB, r.Key, seen.value, looks.life(b.Answers, seen), stream.AnyLifetime)
			if _, counts := seen.number(); counts && released.Verdict == Lost {
				looks.missed, released.Verdict = true, NoQuorum // it may have gone on
			}
			released.Value = seen.value
			all = append(all, released)
		}
	}
	return released(o, all), false
}

// areQuiet tells whether all values that masters showed are those of quiet copies, which
// have not changed for long.
func areQuiet(answers []quorum.Answer[lookAnswer], quiet []effect.Image) bool {
	if len(quiet) != len(answers) { // nil, or the number of masters has changed
		return false
	}
	for i, a := range answers {
		if a.State.Heard() && a.Value.present() && !isCopy(quiet[i], a.Value) {
			return false
		}
	}
	return true
}

// released combines the outcomes of deleting several values. Without any it returns o. If
// one outcome is NoQuorum, the result is, because the key may still exist.
func released(o Outcome, all []Outcome) Outcome {
	for i, r := range all {
		switch {
		case r.Verdict == NoQuorum:
			return r
		case i == 0 || o.Verdict == Lost:
			o = r
		}
	}
	if o.Verdict != Won {
		o.Value = nil
	}
	return o
}

func heardFrom[A any](answers []quorum.Answer[A]) (n int) {
	for _, a := range answers {
		if a.State.Heard() {
			n++
		}
	}
	return n
}

// lookAnswer is one master's answer about a key and the key's lifetime.
type lookAnswer struct {
	reading
	expires time.Time // zero: for ever
}

func (s lookAnswer) equal(t lookAnswer) bool { return s.reading.equal(t.reading) }

// goesOnAs tells whether a later look may show the same lock: equal, or a counter that has gone on.
func (s lookAnswer) goesOnAs(later lookAnswer) bool {
	n, counts := s.number()
	m, countsOn := later.number()
	return s.equal(later) || counts && countsOn && m > n
}

// looks are the looks of one DEL. The DEL may have to look again, and wait for copies that
// differ. Meanwhile its client's lock may end, and another client may take it. So the DEL
// deletes only what it met, which is what its first look showed, or a counter that has gone on since.
type looks struct {
	mu      sync.Mutex
	count   int
	met     []quorum.Answer[lookAnswer] // by master; nil: the first look showed nothing
	late    []lookAnswer                // what came after the verdicts of all looks
	watched []watchedLife
	missed  bool // a deletion found nothing, where the latest look had shown a counter
}

// watchedLife is the longest life of a value that masters showed. A late answer may still
// prolong it.
type watchedLife struct {
	of   lookAnswer
	life *stream.Lifetime
}

func (l *looks) begin() (number int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	// rule: a DEL that has deleted a counter looks no more
	l.missed = false
	return l.count
}

// deletable returns the values that the DEL may delete, of those that its latest look has
// shown. After a wait for quiet copies these must be the copies that the DEL met.
func (l *looks) deletable(now []quorum.Answer[lookAnswer], quiet []effect.Image) []lookAnswer {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count > 1 {
		unchanged := func(i int, met lookAnswer) bool { return isCopy(quiet[i], met) }
		switch {
		case len(l.met) != len(now), quiet != nil && len(l.met) != len(quiet): // the number of masters has changed
			return nil
		case quiet == nil:
			// rule: a DEL that looks again spares a lock that came after it
			now = quorum.Lasting(l.met, now, lookAnswer.goesOnAs)
		case !quorum.Rested(l.met, now, lookAnswer.present, unchanged):
			return nil
		}
	}
	return quorum.Candidates(now, lookAnswer.present, lookAnswer.equal)
}

// isCopy tells whether a copy is what a look showed, as far as the look showed it.
func isCopy(quiet effect.Image, seen lookAnswer) bool {
	return quiet.There() && (seen.err != "" || bytes.Equal(quiet.Text(), seen.value))
}

// life returns the longest life of seen, one of the values that a look showed.
func (l *looks) life(answers []quorum.Answer[lookAnswer], seen lookAnswer) *stream.Lifetime {
	w := watchedLife{seen, stream.NewLifetime(time.Now())}
	for _, a := range answers {
		if a.State.Heard() {
			w.observe(a.Value)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.late {
		w.observe(s)
	}
	l.watched = append(l.watched, w)
	return w.life
}

// add keeps what a master showed, in time or late.
func (l *looks) add(look int, b *ballot.Ballot[lookAnswer], master int, a quorum.Answer[lookAnswer]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if look == 1 {
		if l.met == nil {
			l.met = make([]quorum.Answer[lookAnswer], len(b.Answers))
		}
		l.met[master] = a
	}
	if b.Answers[master].State == quorum.Awaited {
		l.late = append(l.late, a.Value)
		for _, w := range l.watched {
			w.observe(a.Value)
		}
	}
}

func (w watchedLife) observe(s lookAnswer) {
	if s.equal(w.of) {
		w.life.Reach(s.expires)
	}
}

// look asks every master for the key's value and remaining time.
func (l *Locker) look(r ReleaseRequest, looks *looks) *ballot.Ballot[lookAnswer] {
	frames := resp.AppendCommand(resp.AppendCommand(nil, []byte("GET"), r.Key), []byte("PTTL"), r.Key)
	lock, number := string(r.Key), looks.begin()
	return ballot.Poll(l.box, frames, ballot.Question[lookAnswer]{
		Kind:    KindRead,
		DB:      r.DB,
		Replies: 2,
		Parse: func(replies [][]byte) (lookAnswer, error) {
			v, err := parseReading(replies[0])
			left, ok := resp.ParseInteger(replies[1])
			s := lookAnswer{reading: v}
			if left >= 0 {
				s.expires = time.Now().Add(time.Duration(left) * time.Millisecond)
			}
			return s, cmp.Or(err, ballot.ReadAs(replies[1], ok))
		},
		Vote: func(s lookAnswer) Vote { return ballot.VoteOf(s.present()) },
		Decide: func(answers []quorum.Answer[lookAnswer], _ time.Duration) Verdict {
			return quorum.Exists(answers, lookAnswer.present, lookAnswer.equal)
		},
		Settler: ballot.SettleFunc[lookAnswer](func(b *ballot.Ballot[lookAnswer], i int, a quorum.Answer[lookAnswer], verdict Verdict) {
			if a.State.Heard() {
				looks.add(number, b, i, a)
			}
			mendUnlessWon(l, r.DB, lock, a, verdict, lookAnswer.present)
		}),
	})
}

// releaseValue deletes a lock by value on every master. Masters that are away get the
// release when they are back.
func (l *Locker) releaseValue(db int, key, value []byte, life *stream.Lifetime, limit int64) Outcome {
	lock, held := string(key), string(value) // debts outlive the call
	frames := resp.AppendEval(nil, stream.ReleaseScript, [][]byte{key}, value, resp.Decimal(limit))
	missed := &stream.Debt{Script: stream.ReleaseScript, Key: lock, Value: held, Life: life}
	before := l.lanes.Creations(db, lock)
	return ballot.Poll(l.box, frames, ballot.Question[bool]{
		Kind:         KindRelease,
		DB:           db,
		Keys:         []string{lock},
		Replies:      1,
		Debt:         missed,
		OwedToAbsent: true,

		Parse:  ballot.ParseDone,
		Counts: ballot.Yes,
		Vote:   ballot.VoteOf,
		Decide: ballot.Tallied(quorum.Tally.Release),
		Settler: ballot.SettleFunc[bool](func(_ *ballot.Ballot[bool], i int, a quorum.Answer[bool], verdict Verdict) {
			if verdict == Won && a.State.Heard() && !a.Value {
				l.mender.ReleaseAgain(db, missed, i, before)
			}
		}),
	}).Outcome()
}

// releaseCollection deletes a key that is no string. Its value is its whole content, and
// a master deletes the key only if it holds just that. All masters are asked at once,
// because a later deletion could meet a new lock with the same content.
func (l *Locker) releaseCollection(r ReleaseRequest) Outcome {
	looked := ballot.Poll(l.box, resp.AppendCommand(nil, []byte("DUMP"), r.Key), ballot.Question[[]byte]{
		Kind:    KindRead,
		DB:      r.DB,
		Replies: 1,
		Parse: func(replies [][]byte) ([]byte, error) {
			v, err := parseReading(replies[0])
			return v.value, cmp.Or(err, ballot.ReadAs(replies[0], v.err == ""))
		},
		Counts: holdsContent,
		Vote:   func(dump []byte) Vote { return ballot.VoteOf(dump != nil) },
		Decide: func(answers []quorum.Answer[[]byte], _ time.Duration) Verdict {
			_, t := quorum.Largest(answers, holdsContent, rdb.Same)
			return t.Look()
		},
	})
	content, t := quorum.Largest(looked.Answers, holdsContent, rdb.Same)
	if looked.Verdict == Lost || t.Granted == 0 {
		return looked.Outcome()
	}
	frames := resp.AppendEval(nil, deleteScript, [][]byte{r.Key}, rdb.Words(content)...)
	return ballot.Poll(l.box, frames, ballot.Question[bool]{
		Kind:    KindRelease,
		DB:      r.DB,
		Keys:    []string{string(r.Key)},
		Replies: 1,
		Parse:   ballot.ParseDone,
		Counts:  ballot.Yes,
		Vote:    ballot.VoteOf,
		Decide:  ballot.Tallied(quorum.Tally.Release),
	}).Outcome()
}

func holdsContent(dump []byte) bool { return dump != nil }

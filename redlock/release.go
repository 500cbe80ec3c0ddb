package redlock

import (
	"bytes"
	"context"
	"sync"
	"time"

	"redlock-proxy/redlock/ballot"
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
	looks := &looks{}
	return l.settings().Retry.Again(ctx, false, func() Outcome {
		o, missed := l.release(r, looks)
		if !missed {
			return o
		}
		turn, err := l.lanes.Enter(ctx, r.DB, []string{string(r.Key)}, lane.Queueing{Next: true})
		if err != nil {
			return o // the client has gone
		}
		defer turn.Leave() // no request of this process comes between the look and the deletion
		o, _ = l.release(r, looks)
		return o
	})
}

// limit is the longest time, in ms, that is left of a lock which ends by Until on each master.
func (r ReleaseRequest) limit(skew time.Duration) int64 {
	if r.Until.IsZero() {
		return stream.AnyLifetime
	}
	return max(0, time.Until(r.Until.Add(skew)).Milliseconds()) + resp.ExpiryTolerance
}

// release deletes the value that could be held, if it was there when the request came.
// Another client may have taken the lock since, or have replaced its value: nobody knows. If there are
// several such values, or none although the key exists, they may be votes of a client that is just
// acquiring. If the deletion finds nothing, the value may have grown or gone since the look. Then missed
// is true, and release is called again.
func (l *Locker) release(r ReleaseRequest, looks *looks) (o Outcome, missed bool) {
	b := l.look(r.DB, r.Key, looks)
	o = b.Outcome()
	if b.Verdict == Lost {
		return o, false
	}
	o.Verdict = NoQuorum
	unread := o.TooLong >= o.Needed && !r.Get
	if heardFrom(b.Answers) < o.Needed && !unread {
		return o, false
	}
	var seen reading
	switch values := looks.deletable(b.Answers); {
	case unread:
		o = l.releaseUnread(r)
	case len(values) != 1:
		o.Replaced = len(values) == 0 && b.Verdict == Won
		return o, false
	case values[0].err != "" && r.Get:
		o.Verdict, o.Err = b.Verdict, values[0].err
		return o, false
	case values[0].err != "":
		o = l.releaseCollection(r)
	default:
		seen = values[0]
		o = l.releaseValue(r.DB, r.Key, seen.value, looks.life(b.Answers, seen), stream.AnyLifetime)
	}
	switch o.Verdict {
	case Won:
		o.Value = seen.value
	case Lost:
		o.Verdict, missed = NoQuorum, true
	}
	return o, missed
}

func heardFrom[A any](answers []quorum.Answer[A]) (n int) {
	for _, a := range answers {
		if a.State.Heard() {
			n++
		}
	}
	return n
}

// goesOnAs tells whether a later look may show the same key: equal, a counter that has gone on, or a
// string that something was appended to.
func (s reading) goesOnAs(later reading) bool {
	n, counts := s.number()
	m, goesOn := later.number()
	return s.equal(later) || counts && goesOn && m > n || len(s.value) > 0 && bytes.HasPrefix(later.value, s.value)
}

// looks are the looks of one DEL. The DEL may have to look again. Meanwhile its client's lock may
// end, and another client may take it. So the DEL deletes only what it met, which is what its first
// look showed, or what that has grown to since.
type looks struct {
	mu      sync.Mutex
	count   int
	met     []quorum.Answer[reading] // by master; nil: the first look showed nothing
	late    []reading                // what came after the verdicts of all looks
	watched []watchedLife
}

// watchedLife is the longest life of a value that masters showed. A late answer may still
// prolong it.
type watchedLife struct {
	of   reading
	life *stream.Lifetime
}

func (l *looks) begin() (number int) {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	return l.count
}

// deletable returns the values that the DEL may delete, of those that its latest look has
// shown.
func (l *looks) deletable(now []quorum.Answer[reading]) []reading {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count > 1 {
		if len(l.met) != len(now) { // the number of masters has changed
			return nil
		}
		// rule: a DEL that looks again spares a lock that came after it
		now = quorum.Lasting(l.met, now, reading.goesOnAs)
	}
	return quorum.Candidates(now, reading.present, reading.equal)
}

// life returns the longest life of seen, one of the values that a look showed.
func (l *looks) life(answers []quorum.Answer[reading], seen reading) *stream.Lifetime {
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
func (l *looks) add(look int, b *ballot.Ballot[reading], master int, a quorum.Answer[reading]) {
	if l == nil || !a.State.Heard() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if look == 1 {
		if l.met == nil {
			l.met = make([]quorum.Answer[reading], len(b.Answers))
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

func (w watchedLife) observe(s reading) {
	if s.equal(w.of) {
		w.life.Reach(s.expires)
	}
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
		Large:   true, // it may be: no command tells how long a payload is
		Parse: func(replies [][]byte) ([]byte, error) {
			dump, ok := resp.ParseBulk(replies[0])
			if !ok {
				return nil, ballot.ReadAs(replies[0], resp.IsNil(replies[0]))
			}
			return bytes.Clone(dump), nil
		},
		Counts: holdsContent,
		Vote:   func(dump []byte) Vote { return ballot.VoteOf(dump != nil) },
		Decide: func(answers []quorum.Answer[[]byte], _ time.Duration) Verdict {
			_, t := quorum.Largest(answers, holdsContent, rdb.Same)
			return t.Look()
		},
	})
	if o := looked.Outcome(); o.TooLong >= o.Needed {
		return l.releaseUnread(r)
	}
	content, t := quorum.Largest(looked.Answers, holdsContent, rdb.Same)
	if looked.Verdict == Lost || t.Granted == 0 {
		return looked.Outcome()
	}
	return l.releaseIf(r, rdb.Words(content)...)
}

// headerBytes are more than those of a reply in front of its value.
const headerBytes = 64

// releaseUnread deletes a key whose value is longer than an answer of a master may be. Nobody can read
// it, and it is hardly a vote of a client that is just acquiring: limits.lock_command is smaller, by
// default. So the key is deleted if its value still is so long. No DEL that deleted a copy hears 0.
func (l *Locker) releaseUnread(r ReleaseRequest) Outcome {
	return l.releaseIf(r, []byte("longer"), resp.Decimal(l.masters.Limits().MaxReply-headerBytes))
}

// releaseIf deletes a key as delete.lua says.
func (l *Locker) releaseIf(r ReleaseRequest, words ...[]byte) Outcome {
	frames := resp.AppendEval(nil, deleteScript, [][]byte{r.Key}, words...)
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

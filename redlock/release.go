package redlock

import (
	"bytes"
	"cmp"
	"context"
	"sync"
	"time"

	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/rdb"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/stream"
)

// ReleaseRequest deletes a key whatever its value: DEL, UNLINK, GETDEL.
type ReleaseRequest struct {
	DB  int
	Key []byte
	Get bool // the value is asked for, so a key that is no string is an error
}

// Release deletes the key. It is two ballots: one looks at what a quorum holds,
// or could hold if the masters that did not answer or may not vote agreed, and the
// second deletes only that. A bare DEL never goes to a master: it would erase the
// votes of a client that is just acquiring.
// Won: Value is what was deleted. Lost: the key did not exist.
func (l *Locker) Release(ctx context.Context, r ReleaseRequest) Outcome {
	unclear := false
	o := l.again(ctx, false, func() (o Outcome) {
		o, unclear = l.release(r, nil)
		return o
	})
	if !unclear {
		return o
	}
	if quiet := l.mended(ctx, r.DB, string(r.Key)); quiet != nil {
		o, _ = l.release(r, quiet)
	}
	return o
}

// release deletes what could be held. Unclear: there are several such values, and
// unless they are the copies that have been quiet they may be votes of a client
// that is just acquiring; or no value has a quorum of those that make the key exist.
func (l *Locker) release(r ReleaseRequest, quiet []effect.Image) (o Outcome, unclear bool) {
	b, lives := l.look(r)
	o = b.outcome()
	if b.verdict == Lost {
		return o, false
	}
	o.Verdict = NoQuorum
	if heardFrom(b.answers) < o.Needed {
		return o, false
	}
	values := quorum.Candidates(b.answers, sighting.present, sighting.equal)
	if len(values) != 1 && !areQuiet(b.answers, quiet) {
		return o, true
	}
	var all []Outcome
	for _, seen := range values {
		switch {
		case seen.err != "" && r.Get:
			o.Verdict, o.Err = b.verdict, seen.err
			return o, false
		case seen.err != "":
			all = append(all, l.releaseCollection(r))
		default:
			released := l.releaseValue(r.DB, r.Key, seen.value, lives.of(b.answers, seen))
			released.Value = seen.value
			all = append(all, released)
		}
	}
	return released(o, all), false
}

// areQuiet tells whether the values that masters showed are those of copies that
// have not changed for long.
func areQuiet(answers []quorum.Answer[sighting], quiet []effect.Image) bool {
	if quiet == nil {
		return false
	}
	for i, a := range answers {
		if a.State.Heard() && a.Value.present() && (!quiet[i].There() || a.Value.err == "" && !bytes.Equal(quiet[i].Text(), a.Value.value)) {
			return false
		}
	}
	return true
}

// released is what deleting each of several values came to; o, if there was none.
// Unless it is certain of all, nobody can know whether the key is gone.
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

// sighting is a value and how long it lives at most.
type sighting struct {
	reading
	expires time.Time // zero: for ever
}

func (s sighting) present() bool         { return !s.absent() }
func (s sighting) equal(t sighting) bool { return s.reading.equal(t.reading) }

// lives are how long at most the lock of each value lives that masters showed.
// What they show late still prolongs it.
type lives struct {
	mu      sync.Mutex
	late    []sighting
	watched []watchedLife
}

type watchedLife struct {
	of   sighting
	life *stream.Lifetime
}

// of is the life of one of the values that a ballot showed.
func (l *lives) of(answers []quorum.Answer[sighting], seen sighting) *stream.Lifetime {
	w := watchedLife{seen, stream.NewLifetime(time.Now())}
	for _, a := range answers {
		if a.State.Heard() {
			w.sighted(a.Value)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.late {
		w.sighted(s)
	}
	l.watched = append(l.watched, w)
	return w.life
}

func (l *lives) sighted(s sighting) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late = append(l.late, s)
	for _, w := range l.watched {
		w.sighted(s)
	}
}

func (w watchedLife) sighted(s sighting) {
	if s.equal(w.of) {
		w.life.Reach(s.expires)
	}
}

// look asks every master for the key's value and lifetime.
func (l *Locker) look(r ReleaseRequest) (*ballot[sighting], *lives) {
	frames := resp.AppendCommand(resp.AppendCommand(nil, []byte("GET"), r.Key), []byte("PTTL"), r.Key)
	lock, later := string(r.Key), &lives{}
	b := hold(l, frames, question[sighting]{
		kind:    KindRead,
		db:      r.DB,
		replies: 2,
		parse: func(replies [][]byte) (sighting, error) {
			v, err := parseReading(replies[0])
			left, ok := resp.ParseInteger(replies[1])
			s := sighting{reading: v}
			if left >= 0 {
				s.expires = time.Now().Add(time.Duration(left) * time.Millisecond)
			}
			return s, cmp.Or(err, readAs(replies[1], ok))
		},
		vote: func(s sighting) Vote { return voteOf(s.present()) },
		decide: func(answers []quorum.Answer[sighting], _ time.Duration) Verdict {
			return quorum.Exists(answers, sighting.present, sighting.equal)
		},
		late: func(_ *ballot[sighting], _ int, a quorum.Answer[sighting], verdict Verdict) {
			if a.State.Heard() {
				later.sighted(a.Value)
			}
			mendLate(l, r.DB, lock, a, verdict, sighting.present)
		},
	})
	mendRead(b, lock, sighting.present)
	return b, later
}

// releaseValue deletes a lock by value on every master; those that are away
// are told when they are back.
func (l *Locker) releaseValue(db int, key, value []byte, life *stream.Lifetime) Outcome {
	lock, held := string(key), string(value) // debts outlive the call
	frames := releaseScript.append(nil, [][]byte{key}, value, []byte("-1"))
	missed := func(int) *stream.Debt {
		return &stream.Debt{Script: releaseScript.text, Key: lock, Value: held, Life: life}
	}
	before := l.creations.count(db, lock)
	b := hold(l, frames, question[bool]{
		kind:         KindRelease,
		db:           db,
		keys:         []string{lock},
		replies:      1,
		debt:         missed,
		owedToAbsent: true,

		parse:  parseDone,
		counts: isGranted,
		vote:   voteOf,
		decide: func(answers []quorum.Answer[bool], _ time.Duration) Verdict {
			return quorum.Count(answers, isGranted).Release()
		},
		late: func(_ *ballot[bool], i int, a quorum.Answer[bool], verdict Verdict) {
			if verdict == Won && a.State.Heard() && !a.Value {
				l.releaseAgain(db, missed(i), 1<<i, before)
			}
		},
	})
	if b.verdict == Won {
		l.releaseAgain(db, missed(0), foundNothing(b.answers, isGranted), before)
	}
	return b.outcome()
}

// releaseCollection deletes a key that is no string. Its value is its whole
// content, so each master deletes it where it holds that. All are asked at once:
// a deletion that came later could meet a lock of the same content that was taken
// since.
func (l *Locker) releaseCollection(r ReleaseRequest) Outcome {
	looked := hold(l, resp.AppendCommand(nil, []byte("DUMP"), r.Key), question[[]byte]{
		kind:    KindRead,
		db:      r.DB,
		replies: 1,
		parse: func(replies [][]byte) ([]byte, error) {
			v, err := parseReading(replies[0])
			return v.value, cmp.Or(err, readAs(replies[0], v.err == ""))
		},
		counts: holdsContent,
		vote:   func(dump []byte) Vote { return voteOf(dump != nil) },
		decide: func(answers []quorum.Answer[[]byte], _ time.Duration) Verdict {
			_, t := quorum.Largest(answers, holdsContent, rdb.Same)
			return t.Look()
		},
	})
	content, t := quorum.Largest(looked.answers, holdsContent, rdb.Same)
	if looked.verdict == Lost || t.Granted == 0 {
		return looked.outcome()
	}
	frames := deleteScript.append(nil, [][]byte{r.Key}, contentWords(content)...)
	return hold(l, frames, question[bool]{
		kind:    KindRelease,
		db:      r.DB,
		keys:    []string{string(r.Key)},
		replies: 1,
		parse:   parseDone,
		counts:  isGranted,
		vote:    voteOf,
		decide: func(answers []quorum.Answer[bool], _ time.Duration) Verdict {
			return quorum.Count(answers, isGranted).Release()
		},
	}).outcome()
}

// mostCompared bounds how many items of a collection a master is to compare.
const mostCompared = 1 << 14

// contentWords is a collection as delete.lua compares it: its type and what it
// holds, or else its payload.
func contentWords(dump []byte) [][]byte {
	switch v := rdb.Read(dump); v.Kind {
	case rdb.List, rdb.Set, rdb.SortedSet, rdb.Hash:
		if len(v.Items) <= mostCompared {
			return append([][]byte{[]byte(v.Kind.String())}, v.Items...)
		}
	}
	return [][]byte{[]byte("dump"), dump}
}

func holdsContent(dump []byte) bool { return dump != nil }

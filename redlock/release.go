package redlock

import (
	"cmp"
	"context"
	"time"
)

// ReleaseRequest deletes a key whatever its value: DEL, UNLINK, GETDEL.
type ReleaseRequest struct {
	DB  int
	Key []byte
	Get bool // the value is asked for, so a key that is no string is an error
}

// Release deletes the lock that a quorum holds. It is two ballots: one looks
// at what a quorum holds, or could hold if the masters that did not answer
// agreed, and the second deletes only that. A bare DEL never goes to a master:
// it would erase the votes of a client that is just acquiring.
// Won: Value is what was deleted. Lost: no quorum held the key.
func (l *Locker) Release(_ context.Context, r ReleaseRequest) Outcome {
	life := &lifetime{until: time.Now()}
	b := l.look(r, life)
	seen, t := plurality(b.answers, sighting.present, sighting.equal)
	o := b.outcome()
	switch {
	case b.verdict == Lost:
		return o
	case t.granted == 0 || b.verdict == NoQuorum && o.Answered < o.Needed:
		o.Verdict = NoQuorum
		return o
	case seen.err != "" && r.Get:
		o.Err = seen.err
		return o
	case seen.err != "":
		return l.releaseCollection(r)
	}
	life.reach(seen.expires)
	for _, a := range b.answers {
		life.sighted(a, seen)
	}
	o = l.releaseValue(r.DB, r.Key, seen.value, life)
	if o.Verdict == Won {
		o.Value = seen.value
	}
	return o
}

// sighting is a value and how long it lives at most.
type sighting struct {
	reading
	expires time.Time // zero: for ever
}

func (s sighting) present() bool         { return !s.absent() }
func (s sighting) equal(t sighting) bool { return s.reading.equal(t.reading) }

// sighted prolongs the life of the lock that was seen by another sighting of it.
func (l *lifetime) sighted(a answer[sighting], seen sighting) {
	if a.state.heard() && a.value.equal(seen) {
		l.reach(a.value.expires)
	}
}

// look is agreement for a ballot that a release follows: short of certainty,
// every master that still may answer is heard, for the release goes by what a
// quorum could hold.
func (t tally) look() Verdict {
	if v := t.agreement(); v != NoQuorum || t.pending() == 0 {
		return v
	}
	return Pending
}

// look asks every master for the key's value and lifetime. What comes late
// still prolongs life.
func (l *Locker) look(r ReleaseRequest, life *lifetime) *ballot[sighting] {
	frames := appendCommand(appendCommand(nil, []byte("GET"), r.Key), []byte("PTTL"), r.Key)
	return hold(l, frames, question[sighting]{
		kind:    KindRead,
		db:      r.DB,
		replies: 2,
		parse: func(replies [][]byte) (sighting, error) {
			v, err := parseReading(replies[0])
			left, ok := parseInteger(replies[1])
			s := sighting{reading: v}
			if left >= 0 {
				s.expires = time.Now().Add(time.Duration(left) * time.Millisecond)
			}
			return s, cmp.Or(err, readAs(replies[1], ok))
		},
		counts: sighting.present,
		vote:   func(s sighting) Vote { return voteOf(s.present()) },
		decide: func(answers []answer[sighting], _ time.Duration) Verdict {
			_, t := plurality(answers, sighting.present, sighting.equal)
			return t.look()
		},
		late: func(b *ballot[sighting], _ int, a answer[sighting], _ Verdict) {
			seen, _ := plurality(b.answers, sighting.present, sighting.equal)
			life.sighted(a, seen)
		},
	})
}

// releaseValue deletes a lock by value on every master; those that are away
// are told when they are back.
func (l *Locker) releaseValue(db int, key, value []byte, life *lifetime) Outcome {
	lock, held := string(key), string(value) // debts outlive the call
	frames := releaseScript.append(nil, [][]byte{key}, value, []byte("-1"))
	missed := func(int) *debt {
		return &debt{script: releaseScript, key: lock, value: held, life: life}
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
		decide: func(answers []answer[bool], _ time.Duration) Verdict {
			return count(answers, isGranted).release()
		},
		late: func(_ *ballot[bool], i int, a answer[bool], verdict Verdict) {
			if verdict == Won && a.state.heard() && !a.value {
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
// content, so each master deletes it where it still is as that master showed
// it. All are asked at once: a deletion that came later could meet a lock of the
// same content that was taken since.
func (l *Locker) releaseCollection(r ReleaseRequest) Outcome {
	looked := hold(l, appendCommand(nil, []byte("DUMP"), r.Key), question[[]byte]{
		kind:    KindRead,
		db:      r.DB,
		replies: 1,
		parse: func(replies [][]byte) ([]byte, error) {
			v, err := parseReading(replies[0])
			return v.value, cmp.Or(err, readAs(replies[0], v.err == ""))
		},
		counts: holdsContent,
		vote:   func(dump []byte) Vote { return voteOf(dump != nil) },
		decide: func(answers []answer[[]byte], _ time.Duration) Verdict {
			_, t := plurality(answers, holdsContent, sameState)
			return t.look()
		},
	})
	content, t := plurality(looked.answers, holdsContent, sameState)
	if looked.verdict == Lost || t.granted == 0 {
		return looked.outcome()
	}
	return hold(l, nil, question[bool]{
		kind: KindRelease,
		db:   r.DB,
		keys: []string{string(r.Key)},
		each: func(i int) []byte {
			a := looked.answers[i]
			if !a.state.heard() {
				a.value = content // most likely its copy is the same to the byte
			} else if !sameState(a.value, content) {
				a.value = nil // equals nothing, so it refuses
			}
			return deleteScript.append(nil, [][]byte{r.Key}, a.value)
		},
		replies: 1,
		parse:   parseDone,
		counts:  isGranted,
		vote:    voteOf,
		decide: func(answers []answer[bool], _ time.Duration) Verdict {
			return count(answers, isGranted).release()
		},
	}).outcome()
}

func holdsContent(dump []byte) bool { return dump != nil }

package redlock

import (
	"bytes"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/script"
	"redlock-proxy/redlock/stream"
)

// A recognised script is sent to every master as it came, and not between two
// looks: what it did there is known from its answer alone. So the answer that
// the client gets is a master's own here, too.

// said is one master's answer to a recognised script.
type said struct {
	done     bool   // it deleted
	noScript bool   // it did not know the script any more
	reply    []byte // what it answered; nil if done
}

func (s said) did() bool         { return s.done }
func (s said) refused() bool     { return !s.done && !s.noScript }
func (s said) alike(t said) bool { return resp.Equivalent(s.reply, t.reply) }

// A recognised script is one that certainly is a release, with the client's words.
type recognised struct {
	script.Call
	load []stream.Loadable // what EVALSHA needs
}

// runRecognised runs a script plain that certainly is a release. False: it has to
// be examined, and nothing was done, or nothing that doing it again would change.
func (l *Locker) runRecognised(r RunRequest) (o Outcome, ok bool) {
	if r.ReadOnly || r.script == nil || r.script.release == nil {
		return o, false
	}
	call, fits := r.script.release.In(r.Args)
	if !fits || !r.isKey(call.Key) {
		return o, false
	}
	s := recognised{Call: call}
	if len(r.Scripts) == 1 {
		s.load = r.script.text
	}
	if o, ok = l.releaseAsTold(r, s, r.gaveUp); !ok {
		o, ok = l.releaseAsTold(r, s, new(atomic.Bool)) // now it is loaded everywhere
		if o.Verdict == Lost && r.gaveUp.Load() {
			o.Verdict, o.Reply = NoQuorum, nil // it may have been held
		}
	}
	if r.RESP3 && bytes.Equal(o.Reply, []byte("$-1\r\n")) {
		o.Reply = []byte("_\r\n")
	}
	return o, ok
}

// A missedRelease is what a master is told that did not hear of a release. It
// spares what lives longer than the lock that the others deleted.
type missedRelease struct {
	key, owner string
	// How long the lock lives at most is known when it was deleted somewhere. Until
	// then a debt, which waits for those that break off or cannot serve, spares
	// every lock whose value may be a constant, so they are told once more.
	life stream.Lifetime
	seen *stream.Lifetime
}

func (m *missedRelease) debt(int) *stream.Debt {
	return &stream.Debt{Script: releaseScript.text, Key: m.key, Value: m.owner, Life: &m.life}
}

// releaseAsTold is compare-and-delete. The rule is that of all releases
// (quorum.Tally.Release); what masters have missed is delivered by value. False:
// masters had forgotten the script. Deleted is set when one has deleted something.
func (l *Locker) releaseAsTold(r RunRequest, s recognised, deleted *atomic.Bool) (Outcome, bool) {
	db := r.DB
	missed := &missedRelease{key: string(s.Key), owner: string(s.Owner), seen: stream.NewLifetime(time.Now())}
	tell := func(i int) {
		l.masters[i].stream(db).Deliver(missed.debt(i), time.Now(), true)
	}
	before := l.creations.count(db, missed.key)
	var room [usualFrames]byte
	frames := resp.AppendCommand(resp.AppendCommand(room[:0], []byte("PTTL"), s.Key), r.Args...)
	b := hold(l, frames, question[said]{
		kind:    KindRelease,
		db:      db,
		keys:    []string{missed.key},
		replies: 2,
		load:    s.load,
		debt:    missed.debt, // one that is away is told only of what there was to release
		parse: func(replies [][]byte) (said, error) {
			a, err := s.read(replies[1])
			if a.done {
				deleted.Store(true)
			}
			if a.done || err != nil { // what it could not delete it is told once more
				reachAfter(missed.seen, replies[0])
			}
			return a, err
		},
		counts: said.did,
		vote:   func(a said) Vote { return voteOf(a.done) },
		decide: func(answers []quorum.Answer[said], _ time.Duration) Verdict {
			return releaseVerdict(answers)
		},
		late: func(_ *ballot[said], i int, a quorum.Answer[said], verdict Verdict) {
			missed.life.Become(missed.seen)
			switch forgot := l.forgot(db, i, a); {
			case verdict != Won:
			case forgot:
				tell(i)
			case a.State.Heard() && !a.Value.done:
				l.releaseAgain(db, missed.debt(i), 1<<i, before)
			}
		},
	})
	missed.life.Become(missed.seen)
	if l.mustLoad(b) {
		return Outcome{}, false
	}
	if b.verdict == Won || b.verdict == NoQuorum && quorum.Count(b.answers, said.did).Granted > 0 {
		for i, a := range b.answers {
			if a.State.Failed() && !a.State.Heard() || a.Value.noScript {
				tell(i)
			}
		}
	}
	if b.verdict == Won {
		l.releaseAgain(db, missed.debt(0), foundNothing(b.answers, said.did), before)
	}
	return s.outcome(b), true
}

// forgot has the script loaded again, next time, where it is not known.
func (l *Locker) forgot(db, i int, a quorum.Answer[said]) bool {
	if a.Value.noScript {
		l.masters[i].stream(db).ForgetScripts()
	}
	return a.Value.noScript
}

// mustLoad tells whether a ballot came to nothing because scripts were
// forgotten. The next try loads them, and one that cannot be loaded is examined.
func (l *Locker) mustLoad(b *ballot[said]) bool {
	forgotten := false
	for i, a := range b.answers {
		forgotten = l.forgot(b.db, i, a) || forgotten
	}
	return forgotten && b.verdict == NoQuorum
}

func countSaid(answers []quorum.Answer[said]) quorum.Tally {
	t := quorum.Count(answers, said.did)
	for _, a := range answers {
		if a.State == quorum.Answered && a.Value.noScript {
			t.Refused--
			t.Failed++
		}
	}
	return t
}

func releaseVerdict(answers []quorum.Answer[said]) Verdict {
	_, refusals := quorum.Largest(answers, said.refused, said.alike)
	return countSaid(answers).Release().Told(refusals)
}

func (s *recognised) outcome(b *ballot[said]) Outcome {
	o := b.outcome()
	switch o.Verdict {
	case Won:
		o.Reply = []byte(s.Deleted)
	case Lost:
		a, _ := quorum.Largest(b.answers, said.refused, said.alike)
		o.Reply = a.reply
	}
	return o
}

// read is what a master made of the script.
func (s *recognised) read(reply []byte) (said, error) {
	switch {
	case string(reply) == s.Deleted:
		return said{done: true}, nil
	case s.load != nil && resp.IsNoScript(reply):
		return said{noScript: true}, nil
	}
	return said{reply: bytes.Clone(reply)}, readAs(reply, true)
}

// reachAfter prolongs the life of a lock that was deleted, by the PTTL it had.
func reachAfter(l *stream.Lifetime, pttl []byte) {
	switch left, ok := resp.ParseInteger(pttl); {
	case !ok || left == effect.NoKey:
	case left == effect.NoExpiry:
		l.Reach(time.Time{})
	default:
		l.Reach(time.Now().Add(time.Duration(left) * time.Millisecond))
	}
}

// isKey tells whether the key is one of those that the request is on.
func (r *RunRequest) isKey(key []byte) bool {
	return slices.ContainsFunc(r.Keys, func(k []byte) bool { return bytes.Equal(k, key) })
}

// scriptText is the text of the one script that the request runs, as far as
// it is known; nil if there is none.
func (r *RunRequest) scriptText() []byte {
	switch {
	case r.Transaction != nil || len(r.Args) < 3:
		return nil
	case len(r.Scripts) == 1:
		return r.Scripts[0]
	case strings.EqualFold(string(r.Args[0]), "EVAL"), strings.EqualFold(string(r.Args[0]), "EVAL_RO"):
		return r.Args[1]
	}
	return nil
}

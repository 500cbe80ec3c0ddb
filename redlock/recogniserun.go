package redlock

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"
)

// A recognised script is sent to every master as it came, and not between two
// looks: what it did there is known from its answer alone. So the answer that
// the client gets is a master's own here, too.

// said is one master's answer to a recognised script.
type said struct {
	done     bool   // it deleted, or extended
	noScript bool   // it did not know the script any more
	reply    []byte // what it answered; nil if done
}

func (s said) did() bool         { return s.done }
func (s said) refused() bool     { return !s.done && !s.noScript }
func (s said) alike(t said) bool { return sameShape(s.reply, t.reply) }

// recognise tells what the request's script means; nothing, if it has to be
// examined.
func (l *Locker) recognise(r *RunRequest) recognised {
	text := r.scriptText()
	if text == nil {
		return recognised{}
	}
	s := l.meanings.of(text).in(r.Args)
	switch {
	case s.form == noForm:
	case !r.isKey(s.key):
		s.form = noForm
	case len(r.Scripts) == 1:
		s.load = []loadable{{sha: strings.ToLower(string(r.Args[1])), text: text}}
	}
	return s
}

// runRecognised runs a script plain. False: it has to be examined, and nothing
// was done, or nothing that doing it again would change.
func (l *Locker) runRecognised(ctx context.Context, r RunRequest, s recognised) (o Outcome, ok bool) {
	if r.ReadOnly || r.Transaction != nil || len(s.companions) > 0 {
		return o, false
	}
	switch s.form {
	case formRelease:
		o, ok = l.releaseAsTold(r, s)
	case formExtend:
		ttl, fits := s.lifespan()
		if !fits {
			return o, false
		}
		o = l.again(ctx, true, func() (o Outcome) {
			o, ok = l.extendAsTold(ctx, r, s, ttl)
			return o
		})
	}
	if r.RESP3 && bytes.Equal(o.Reply, []byte("$-1\r\n")) {
		o.Reply = []byte("_\r\n")
	}
	return o, ok
}

// releaseAsTold is compare-and-delete. The rule is that of all releases
// (tally.release); what masters have missed is delivered by value, and spares
// what lives longer than the lock that the others deleted.
func (l *Locker) releaseAsTold(r RunRequest, s recognised) (Outcome, bool) {
	key, owner := bytes.Clone(s.key), bytes.Clone(s.owner) // debts outlive the call
	// How long the lock lives at most is known when it was deleted somewhere. Until
	// then a debt, which waits for those that break off or cannot serve, spares
	// every lock whose value may be a constant, so they are told once more.
	life, seen := &lifetime{}, &lifetime{until: time.Now()}
	owed := debt{script: releaseScript, key: key, value: owner, life: life}
	debts := slices.Repeat([]debt{owed}, len(l.masters))
	tell := func(i int) {
		again := owed
		l.masters[i].stream(r.DB).deliver(&again, time.Now(), true)
	}
	b := hold(l, question[said]{
		kind:    KindRelease,
		db:      r.DB,
		keys:    [][]byte{key},
		frames:  appendCommand(appendCommand(nil, []byte("PTTL"), key), r.Args...),
		replies: 2,
		load:    s.load,
		debt: func(i int) *debt {
			// One that is away is told only of what there was to release.
			if !l.masters[i].stream(r.DB).listens() {
				return nil
			}
			return &debts[i]
		},
		parse: func(replies [][]byte) (said, error) {
			a, err := s.read(replies[1])
			if a.done {
				seen.reachAfter(replies[0])
			}
			return a, err
		},
		counts: said.did,
		vote:   func(a said) Vote { return voteOf(a.done) },
		decide: func(answers []answer[said], _ time.Duration) Verdict {
			return releaseVerdict(answers)
		},
		late: func(_ *ballot[said], i int, a answer[said], verdict Verdict) {
			life.become(seen)
			if l.forgot(r.DB, i, a) && verdict == Won {
				tell(i)
			}
		},
	})
	life.become(seen)
	if l.mustLoad(b) {
		return Outcome{}, false
	}
	if b.verdict == Won || b.verdict == NoQuorum && count(b.answers, said.did).granted > 0 {
		for i, a := range b.answers {
			if a.state.failed() && !a.state.heard() || a.value.noScript {
				tell(i)
			}
		}
	}
	return s.outcome(b), true
}

// forgot has the script loaded again, next time, where it is not known.
func (l *Locker) forgot(db, i int, a answer[said]) bool {
	if a.value.noScript {
		l.masters[i].stream(db).forgetScripts()
	}
	return a.value.noScript
}

// mustLoad tells whether a ballot came to nothing because scripts were
// forgotten. The examined run loads them.
func (l *Locker) mustLoad(b *ballot[said]) bool {
	forgotten := false
	for i, a := range b.answers {
		forgotten = l.forgot(b.db, i, a) || forgotten
	}
	return forgotten && b.verdict == NoQuorum
}

func countSaid(answers []answer[said]) tally {
	t := count(answers, said.did)
	for _, a := range answers {
		if a.state == answered && a.value.noScript {
			t.refused--
			t.failed++
		}
	}
	return t
}

func releaseVerdict(answers []answer[said]) Verdict {
	return refusing(answers, countSaid(answers).release())
}

// refusing lets a ballot be lost only by answers of a quorum that are alike,
// for one of them is what the client reads.
func refusing(answers []answer[said], verdict Verdict) Verdict {
	if verdict != Lost {
		return verdict
	}
	_, t := plurality(answers, said.refused, said.alike)
	switch {
	case t.granted >= quorum(len(answers)):
		return Lost
	case t.pending() > 0:
		return Pending
	}
	return NoQuorum
}

func (s *recognised) outcome(b *ballot[said]) Outcome {
	o := b.outcome()
	switch o.Verdict {
	case Won:
		o.Reply = s.done
	case Lost:
		a, _ := plurality(b.answers, said.refused, said.alike)
		o.Reply = a.reply
	}
	return o
}

// read is what a master made of the script.
func (s *recognised) read(reply []byte) (said, error) {
	switch {
	case bytes.Equal(reply, s.done):
		return said{done: true}, nil
	case s.load != nil && isNoScript(reply):
		return said{noScript: true}, nil
	}
	return said{reply: bytes.Clone(reply)}, readAs(reply, true)
}

// reachAfter prolongs the life of a lock that was deleted, by the PTTL it had.
func (l *lifetime) reachAfter(pttl []byte) {
	switch left, ok := parseInteger(pttl); {
	case !ok || left == noKey:
	case left == noExpiry:
		l.reach(time.Time{})
	default:
		l.reach(time.Now().Add(time.Duration(left) * time.Millisecond))
	}
}

func (l *lifetime) become(m *lifetime) {
	end, _ := m.end()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = end
}

// listens tells whether the master can be asked now.
func (s *stream) listens() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepts()
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

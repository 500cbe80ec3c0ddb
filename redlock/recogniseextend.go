package redlock

import (
	"context"
	"strconv"
	"time"

	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/resp"
)

// extendAsTold is compare-and-expire. It takes its turn and needs validity as
// every extension does, is never undone, and reaches by value who missed it.
func (l *Locker) extendAsTold(ctx context.Context, r RunRequest, s recognised, ttl time.Duration) (Outcome, bool) {
	key, owner := string(s.key), string(s.owner)
	pass, err := l.turns.takeNext(ctx, r.DB, key)
	if err != nil {
		return Outcome{Verdict: NoQuorum, Asked: len(l.masters), Needed: quorum.Size(len(l.masters))}, true
	}
	defer pass()
	missed := func(b *ballot[said], i int, a quorum.Answer[said]) {
		if a.State.Failed() || a.Value.noScript {
			d := &debt{script: expireScript, key: key, value: owner, ttl: b.started.Add(ttl)}
			l.masters[i].stream(r.DB).deliver(d, time.Now(), true)
		}
	}
	b := hold(l, resp.AppendCommand(nil, r.Args...), question[said]{
		kind:    KindExtend,
		db:      r.DB,
		keys:    []string{key},
		creates: true,
		lives:   l.covered(ttl),
		replies: 1,
		load:    s.load,
		parse:   func(replies [][]byte) (said, error) { return s.read(replies[0]) },
		vote:    func(a said) Vote { return voteOf(a.done) },
		decide: func(answers []quorum.Answer[said], elapsed time.Duration) Verdict {
			verdict := extensionVerdict(answers)
			if verdict == Won && l.validity(ttl, elapsed) <= 0 {
				return NoQuorum // a refusal is never invented
			}
			return verdict
		},
		late: func(b *ballot[said], i int, a quorum.Answer[said], verdict Verdict) {
			if l.forgot(r.DB, i, a); verdict == Won {
				missed(b, i, a)
			}
		},
	})
	if l.mustLoad(b) {
		return Outcome{}, false
	}
	if b.verdict == Won {
		for i, a := range b.answers {
			missed(b, i, a)
		}
	}
	o := s.outcome(b)
	if o.Verdict == Won {
		o.Lives = ttl
	}
	return o, true
}

func extensionVerdict(answers []quorum.Answer[said]) Verdict {
	return refusing(answers, countSaid(answers).Agree())
}

// lifespan is the TTL of an extension; false if the masters would say
// otherwise of it, or delete.
func (s *recognised) lifespan() (time.Duration, bool) {
	n := s.ttl.number
	if s.ttl.kind != valueNumber {
		text := string(s.word(s.ttl.word))
		var err error
		if n, err = strconv.ParseInt(text, 10, 64); err != nil || strconv.FormatInt(n, 10) != text {
			return 0, false
		}
	}
	unit := time.Millisecond
	if s.ttl.seconds {
		unit = time.Second
	}
	return time.Duration(n) * unit, n > 0 && n < int64(longestRecognised/unit)
}

// longestRecognised keeps TTLs clear of what servers and time.Duration can hold.
const longestRecognised = 10 * 365 * 24 * time.Hour

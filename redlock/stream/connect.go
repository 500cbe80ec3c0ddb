package stream

import (
	"context"
	"slices"
	"time"

	"redlock-proxy/redlock/resp"
)

// Run keeps the stream connected until ctx ends. It owns the connection, and waits for its
// link. From then on the stream refuses all calls.
func (s *Stream) Run(ctx context.Context) {
	redial := Backoff{Loop: s.loop}
	var malformed problem
	for ctx.Err() == nil {
		began, err := s.connectAndServe(ctx)
		if malformed.isNews(err, !began.IsZero()) {
			s.tellMalformed(err)
		}
		switch {
		case ctx.Err() != nil:
		case !began.IsZero() && redial.AtOnce(err, time.Since(began)):
			s.lost(err, dialling)
		default:
			s.lost(err, down)
			s.loop.Wait(redial.Pause(), ctx.Done())
		}
	}
	s.lost(ctx.Err(), closed)
}

// connectAndServe opens one connection and serves it until it ends. It returns when the
// connection began and why it ended. began is zero if there was no connection.
func (s *Stream) connectAndServe(ctx context.Context) (began time.Time, err error) {
	err = Contain(s.log, func() error {
		l, err := s.connect(ctx)
		if err != nil {
			return err
		}
		began = time.Now()
		defer s.loop.OnEnd(ctx, l.close)()
		return l.run()
	})
	return began, err
}

// tellMalformed logs that the master sends what no Redis sends. Such a master is dialled
// no more often than an unreachable one.
func (s *Stream) tellMalformed(why error) {
	s.log.Error("a lock master sends what no Redis sends, so it is dialled anew; check what listens at its address",
		"master", s.owner.Name(), "db", s.db, "error", why)
}

// connect dials and makes the new connection the stream's. It puts two things in front of
// the waiting calls. First comes CLIENT KILL of earlier connections, because a stopped
// master may still hold their commands. Then come the debts, so that no old undo can meet
// a new lock. If there are very many, the first of them come, and no call that may create
// a lock is sent before the last.
func (s *Stream) connect(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, s.stall())
	defer cancel()
	c, err := Connect(ctx, s.owner.Server(), Handshake{DB: s.db, Loop: s.loop})
	if err != nil {
		return nil, err
	}
	abandon := func() { c.Close() }
	defer func() { abandon() }() // also after a panic
	// The owner judges all answers on this connection by this greeting.
	s.owner.Up(c.Greeting, time.Now())
	l, err := s.newLink(c)
	if err != nil {
		return nil, err
	}
	abandon = l.close
	s.takeOver(l, c.Greeting, time.Now())
	abandon = func() {}
	return l, nil
}

func (s *Stream) takeOver(l *link, self Greeting, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var first []byte
	var calls []Call
	// Another run of the server has no connections of the old one, and may have given
	// their numbers to other clients.
	s.earlier = slices.DeleteFunc(s.earlier, func(old identity) bool { return old.RunID != self.RunID })
	for _, old := range s.earlier {
		first = resp.AppendCommand(first, "CLIENT", "KILL", "ID", old.ClientID)
		calls = append(calls, Call{Replies: 1, sent: now, Asker: s.killed(old)})
	}
	s.dropSettled(now.Add(-s.owner.Timeout()))
	s.unpaid = s.firstDebts()
	for _, d := range s.debts[:s.unpaid] {
		first = d.append(first, now, true, s.owner.Timeout())
		calls = append(calls, Call{Replies: 1, sent: now, Asker: &payment{d, true}})
	}
	s.dropDebts(s.unpaid)
	for i := s.head; i < len(s.calls); i++ {
		s.calls[i].sent = now
		// SCRIPT LOAD for the waiting calls is still in s.out.
		calls = append(calls, s.calls[i])
	}
	// rule: debts come before new calls
	s.out = append(first, s.out...)
	s.calls, s.head, s.unwritten = calls, 0, len(calls)
	if self.ClientID != "" {
		// rule: a connection is killed until the kill was heard
		s.earlier = append(s.earlier, self.identity)
	}
	s.link, s.state = l, up
	s.longest, s.due, s.info = 0, true, nil
	s.sole, s.askedInfo = self.Sole, time.Time{}
}

// killed handles the reply to CLIENT KILL of an earlier connection.
func (s *Stream) killed(old identity) AskerFunc {
	return func(replies [][]byte, _ Judgement, err error) {
		if err != nil {
			return // the next connection tries again
		}
		if resp.IsError(replies[0]) {
			s.log.Warn("a lock master refuses CLIENT KILL, so after a broken connection a command may run after its undo; grant CLIENT KILL to the proxy's user",
				"master", s.owner.Name(), "error", resp.ErrorText(replies[0]))
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.earlier = slices.DeleteFunc(s.earlier, func(i identity) bool { return i == old })
	}
}

// A payment is the asker of a debt. If the master cannot serve the debt now, the stream
// keeps it. A beat sends it again.
type payment struct {
	debt  *Debt
	later bool // the debt was kept before, and counts as unpaid
}

func (p *payment) Answered(s *Stream, _ *Call, replies [][]byte, _ Judgement, err error) {
	if err != nil {
		return // giveUpCalls keeps the debt
	}
	served := !resp.IsError(replies[0]) || resp.IsWrongType(replies[0])
	if !served {
		s.Owe(p.debt)
	}
	if p.later {
		s.paid(served)
	}
}

func (p *payment) Owed(*Call) *Debt { return p.debt }

// lost ends all unanswered calls and keeps their debts.
func (s *Stream) lost(why error, next connectionState) {
	calls, sent := s.giveUpCalls(next)
	for i := range calls {
		c := &calls[i]
		err := ErrUnsent
		if i < sent {
			err = errLost
		}
		if !c.check {
			Contained(s.log, func() { c.Asker.Answered(s, c, nil, Judgement{}, err) })
		}
	}
	if next != closed {
		s.owner.Down(why)
	}
}

// giveUpCalls ends the connection's state. It returns the unanswered calls and the number
// of them that were sent, and keeps their debts. There may be tens of thousands. So it asks
// for the debts without the mutex, and the stream takes no calls meanwhile.
func (s *Stream) giveUpCalls(next connectionState) (calls []Call, sent int) {
	calls, sent, older := s.endConnection()
	owed := s.owed(calls, sent)
	s.mu.Lock()
	defer s.mu.Unlock()
	newer := slices.Clone(s.debts[older:])
	s.state, s.debts = next, s.debts[:older]
	for _, d := range owed {
		s.keep(d)
	}
	s.debts = append(s.debts, newer...)
	if next == closed {
		s.dropDebts(len(s.debts))
	}
	return calls, sent
}

// endConnection forgets the connection. It returns the unanswered calls, the number of
// them that were sent, and the number of debts. From now on debts are only added.
func (s *Stream) endConnection() (calls []Call, sent, debts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetGate()
	calls = s.calls[s.head:]
	sent = len(calls) - s.unwritten
	s.calls, s.head, s.out, s.unwritten, s.unpaid, s.asking = nil, 0, nil, 0, 0, 0
	s.loaded = map[string]bool{}
	s.refuses, s.probing, s.probed = false, false, time.Time{}
	s.state, s.link = down, nil
	return calls, sent, len(s.debts)
}

// debtOf returns the debt of a call, or nil. The stream's mutex is not held.
func (s *Stream) debtOf(c *Call) (d *Debt) {
	Contained(s.log, func() {
		// rule: a release that was under way when the connection broke is not forgotten
		d = c.Asker.Owed(c)
	})
	return d
}

// owed returns the debts of calls whose connection has ended. The first of them were sent.
func (s *Stream) owed(calls []Call, sent int) (debts []*Debt) {
	written := map[string]bool{} // keys that the sent calls may write
	for i := range calls {
		c := &calls[i]
		if c.check {
			continue
		}
		if i < sent {
			for _, key := range c.Writes {
				written[key] = true
			}
		}
		d := s.debtOf(c)
		if d == nil {
			continue
		}
		if !d.Blind && written[d.Key] {
			blind := *d // other streams may have the same debt
			blind.Blind = true
			d = &blind
		}
		debts = append(debts, d)
	}
	return debts
}

package redlock

import (
	"bytes"
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"time"

	"redlock-proxy/redlock/resp"
)

// identity tells a connection from all others of its server, so that its
// successor can make sure that nothing sent on it is executed any more.
type identity struct {
	clientID string
	runID    string
}

// A greeting is what a server says of itself when a connection begins.
type greeting struct {
	identity
	problem string // why it can be no lock master; empty if it can
	replication
	sole bool // ROLE says that it is a master that has never replicated
}

// maxGreeting bounds what a server says before it is known to be a master.
const maxGreeting = 1 << 20

// run keeps the stream connected until ctx ends. It owns the connection and
// waits for the reader and the writer it starts.
func (s *stream) run(ctx context.Context) {
	var redial redialling
	for ctx.Err() == nil {
		began, err := s.connectAndServe(ctx)
		switch {
		case ctx.Err() != nil:
		case !began.IsZero() && redial.atOnce(err, time.Since(began)):
			s.lost(err, dialling)
		default:
			s.tellMalformed(err)
			s.lost(err, down)
			sleepFor(ctx, redial.pause())
		}
	}
	s.lost(ctx.Err(), closed)
}

// connectAndServe is one connection, from when it began to why it ended. The zero
// time: there was none.
func (s *stream) connectAndServe(ctx context.Context) (began time.Time, err error) {
	err = contain(s.master.log, func() error {
		conn, reader, err := s.connect(ctx)
		if err != nil {
			return err
		}
		began = time.Now()
		return s.serve(ctx, conn, reader)
	})
	return began, err
}

// tellMalformed logs that the master sends what no Redis does. It is then
// dialled no more often than one that is away.
func (s *stream) tellMalformed(why error) {
	if isMalformed(why) {
		s.master.log.Error("a lock master does not answer as a Redis does and is dialled anew; look at what listens at its address",
			"master", s.master.name(), "db", s.db, "error", why)
	}
}

// connect dials, introduces itself and makes the new connection the stream's.
// What has to come first on it is put in front of the calls that wait: CLIENT
// KILL of the predecessor, whose commands a stopped master may still hold, and
// then the debts, so that no new lock can meet an old undo.
func (s *stream) connect(ctx context.Context) (net.Conn, *resp.Reader, error) {
	ctx, cancel := context.WithTimeout(ctx, s.master.stall())
	defer cancel()
	conn, err := s.master.dial(ctx)
	if err != nil {
		return nil, nil, err
	}
	established := false
	defer func() {
		if !established {
			conn.Close()
		}
	}()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	reader := resp.NewReader(conn, 16<<10, maxGreeting)
	self, err := s.introduce(conn, reader)
	if err != nil || !stop() {
		return nil, nil, errors.Join(err, ctx.Err())
	}
	reader.SetLimit(s.master.settings().MaxReply)
	// Whatever is answered on this connection is judged by what it says here.
	s.master.greeted(s.db, self, time.Now())
	s.takeOver(conn, self, time.Now())
	s.master.tellQueued()
	established = true
	return conn, reader, nil
}

// introduce authenticates, selects the database and learns who the connection
// is. Its deadline is the closing of conn by connect.
func (s *stream) introduce(conn net.Conn, r *resp.Reader) (greeting, error) {
	var out []byte
	var asked []string
	ask := func(args ...string) { out, asked = resp.AppendCommand(out, args...), append(asked, args[0]) }
	m := s.master.server.Load()
	switch {
	case m.Username != "":
		ask("AUTH", m.Username, m.Password)
	case m.Password != "":
		ask("AUTH", m.Password)
	}
	if s.db != 0 {
		ask("SELECT", strconv.Itoa(s.db))
	}
	if s.master.embedded() {
		ask("PING")
	} else {
		ask("CLIENT", "ID")
		ask("INFO", "server")
		ask("INFO", "replication")
		ask("ROLE")
	}
	_, failed := conn.Write(out)
	// One that takes no more clients says so and ends the connection, perhaps
	// before it was asked.
	ended := errors.Join(failed, r.Fetch(len(asked)))
	defer r.Discard()
	replies := r.Fetched(nil)
	for i, reply := range replies {
		if resp.IsError(reply) && asked[i] != "ROLE" {
			return greeting{}, turnedAway(asked[i], reply)
		}
	}
	if ended != nil {
		return greeting{}, ended
	}
	if s.master.embedded() {
		return greeting{}, nil
	}
	last := replies[len(replies)-4:]
	id, _ := resp.ParseInteger(last[0])
	server, _ := resp.ParseBulk(last[1])
	replicates, _ := resp.ParseBulk(last[2])
	self := readGreeting(id, server, replicates)
	self.sole = bytes.Equal(last[3], roleOfSole) && isSole(replicates, self.replication)
	return self, nil
}

func readGreeting(clientID int64, server, replicates []byte) greeting {
	g := greeting{
		identity:    identity{clientID: strconv.FormatInt(clientID, 10), runID: infoField(server, "run_id")},
		replication: readReplication(replicates),
	}
	switch mode := infoField(server, "redis_mode"); {
	case g.runID == "":
		g.problem = "it does not say its run_id in INFO server"
	case mode == "cluster":
		g.problem = "it runs in cluster mode"
	case mode == "sentinel":
		g.problem = "it is a Sentinel"
	}
	return g
}

func infoField(info []byte, name string) string {
	for line := range bytes.Lines(info) {
		if v, ok := bytes.CutPrefix(line, []byte(name+":")); ok {
			return string(bytes.TrimSpace(v))
		}
	}
	return ""
}

func (s *stream) takeOver(conn net.Conn, self greeting, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var first []byte
	var calls []call
	// Another run of the server has closed all its connections itself, and may
	// have given their numbers to somebody else.
	s.earlier = slices.DeleteFunc(s.earlier, func(old identity) bool { return old.runID != self.runID })
	for _, old := range s.earlier {
		first = resp.AppendCommand(first, "CLIENT", "KILL", "ID", old.clientID)
		calls = append(calls, call{replies: 1, sent: now, asker: s.killed(old)})
	}
	for _, d := range s.debts {
		if d.over(now.Add(-s.master.timeout())) {
			continue
		}
		first = d.append(first, now, true, s.master.timeout())
		calls = append(calls, call{replies: 1, sent: now, asker: &payment{d, true}})
		s.unpaid++
	}
	s.clearDebts()
	for i := s.head; i < len(s.calls); i++ {
		s.calls[i].sent = now
		// What was loaded for waiting calls is still in s.out.
		calls = append(calls, s.calls[i])
	}
	s.out = append(first, s.out...)
	s.calls, s.head, s.unwritten = calls, 0, len(calls)
	if self.clientID != "" {
		s.earlier = append(s.earlier, self.identity)
	}
	s.conn, s.state = conn, up
	s.longest, s.due, s.checked = 0, true, checked{}
	s.sole, s.askedInfo = self.sole, time.Time{}
}

// killed hears whether an earlier connection is gone.
func (s *stream) killed(old identity) askerFunc {
	return func(replies [][]byte, _ standing, err error) {
		if err != nil {
			return // the next connection tries again
		}
		if resp.IsError(replies[0]) {
			s.master.log.Warn("the master refuses CLIENT KILL, so undos may be overtaken after a broken connection; grant it to the proxy's user",
				"master", s.master.name(), "error", resp.ErrorText(replies[0]))
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.earlier = slices.DeleteFunc(s.earlier, func(i identity) bool { return i == old })
	}
}

// A payment hears the answer to a debt. A master that cannot serve now is told
// again with its next connection or answer.
type payment struct {
	debt  *debt
	later bool // it has been kept before, and counts as unpaid
}

func (p *payment) answered(s *stream, _ *call, replies [][]byte, _ standing, err error) {
	if err != nil {
		return // lost keeps the debt
	}
	if ownAs(replies[0], true) != nil {
		s.owe(p.debt)
		s.payLater()
		s.doubt(replies[0])
	}
	if p.later {
		s.mu.Lock()
		s.unpaid--
		s.mu.Unlock()
	}
}

func (p *payment) owed(*call) *debt { return p.debt }

// serve runs reader and writer until the connection ends and returns why.
func (s *stream) serve(ctx context.Context, conn net.Conn, reader *resp.Reader) error {
	stop := make(chan struct{})
	ended := make(chan error, 1)
	stopClosing := context.AfterFunc(ctx, func() { conn.Close() })
	go func() {
		err := contain(s.master.log, func() error { return s.write(conn, stop) })
		conn.Close()
		ended <- err
	}()
	err := contain(s.master.log, func() error { return s.read(reader) })
	stopClosing()
	conn.Close()
	close(stop)
	return errors.Join(err, <-ended)
}

// lost ends all unanswered calls and keeps their debts.
func (s *stream) lost(why error, next streamState) {
	calls, sent := s.giveUpCalls(next)
	for i := range calls {
		c := &calls[i]
		err := errUnsent
		if i < sent {
			err = errLost
		}
		if !c.check {
			contained(s.master.log, func() { c.asker.answered(s, c, nil, standing{}, err) })
		}
	}
	s.master.tellQueued()
	if next != closed {
		s.master.disconnected(s.db, why)
	}
}

// giveUpCalls ends what the stream was about on a connection. It returns its
// calls, and how many of them were sent.
func (s *stream) giveUpCalls(next streamState) (calls []call, sent int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetGate()
	calls = s.calls[s.head:]
	sent = len(calls) - s.unwritten
	s.calls, s.head, s.out, s.unwritten, s.unpaid, s.asking = nil, 0, nil, 0, 0, 0
	s.loaded = map[string]bool{}
	s.refuses, s.probing = false, false
	s.state, s.conn = next, nil
	if next == closed {
		s.clearDebts()
	}
	written := map[string]bool{} // by calls so far, perhaps
	for i := range calls {
		c := &calls[i]
		if c.check {
			continue
		}
		if i < sent {
			for _, key := range c.writes {
				written[key] = true
			}
		}
		var d *debt
		contained(s.master.log, func() { d = c.asker.owed(c) })
		if d != nil && next != closed {
			d.blind = d.blind || written[d.key]
			s.keep(d)
		}
	}
	return calls, sent
}

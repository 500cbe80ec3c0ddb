package notify

import (
	"context"
	"errors"
	"net"
	"time"

	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/stream"
)

// A listener is the one connection to a master that tells what happens there.
// Its goroutines are the listening's.
type listener struct {
	listening *Hub
	master    Source
	number    int
	wake      chan struct{} // to the writer: out is not empty

	// guarded by listening.mu
	state    listenerState
	tried    bool // an attempt to connect has come to its end
	resp3    bool
	out      []byte
	expected []expectation // answers to come, oldest first
	// proof is when the master was asked what it has answered last: what it
	// published before has been heard.
	proof  time.Time
	warned bool // of something that the master refuses
}

type listenerState uint8

const (
	dialling listenerState = iota
	up
	down // between redials
)

// An expectation is an answer to come.
type expectation struct {
	verb string        // "ping", or the topic's
	sub  *subscription // nil: a PING
	ends bool
	sent time.Time
}

var (
	errSilent   = errors.New("no answer")
	errReplaced = errors.New("another server has become this master")
	errAnswer   = errors.New("the master's answer is none to what it was asked")
)

// maxHearing bounds one message. Redis ends connections to which it owes more
// than 32 MB of them, unless it is told otherwise.
const maxHearing = 64 << 20

// run keeps the connection until ctx ends.
func (r *listener) run(ctx context.Context) {
	var redial stream.Backoff
	for ctx.Err() == nil {
		server := r.master.Name()
		c, err := r.connect(ctx)
		if err == nil {
			began := time.Now()
			err = r.serve(ctx, c.Conn, c.Reader, server)
			if redial.AtOnce(err, time.Since(began)) {
				r.ended(ctx, dialling, err)
				continue
			}
		}
		r.ended(ctx, down, err)
		stream.Sleep(ctx, redial.Pause())
	}
}

// connect dials, and asks for everything that is wanted.
func (r *listener) connect(ctx context.Context) (*stream.Connection, error) {
	ctx, cancel := context.WithTimeout(ctx, r.listening.stall())
	defer cancel()
	c, err := stream.Connect(ctx, r.master.Server(), stream.Handshake{Pushes: true})
	if err != nil {
		return nil, err
	}
	c.Reader.SetLimit(maxHearing)
	if c.NoPushes != nil {
		r.warn("HELLO 3", c.NoPushes)
	}
	r.begin(c.NoPushes == nil && !r.master.Embedded(), time.Now())
	return c, nil
}

// warn logs, once, that the master does not tell of something.
func (r *listener) warn(refused string, reply []byte) {
	r.listening.mu.Lock()
	warned := r.warned
	r.warned = true
	r.listening.mu.Unlock()
	if !warned {
		r.listening.log.Error("a lock master refuses what wakes waiting clients; they poll, or wait longer. Use Redis 6 or newer, and grant the proxy's user all channels and CLIENT TRACKING",
			"master", r.master.Name(), "refused", refused, "error", resp.ErrorText(reply))
	}
}

// begin makes the connection the listener's.
func (r *listener) begin(resp3 bool, now time.Time) {
	l := r.listening
	l.mu.Lock()
	defer l.mu.Unlock()
	if !r.current() {
		return
	}
	r.state, r.tried, r.resp3, r.proof = up, true, resp3, now
	r.out, r.expected = nil, nil
	l.untold[r.number] = !resp3
	for _, sub := range l.topics {
		r.ask(sub)
	}
	l.settleAll()
	l.log.Debug("listening to a lock master", "master", r.master.Name())
}

// current tells, with mu held, whether it is still listened to.
func (r *listener) current() bool {
	return r.listening.listeners != nil && r.listening.listeners[r.number] == r
}

// ended hears that a connection, or an attempt at one, has ended.
func (r *listener) ended(ctx context.Context, next listenerState, why error) {
	l := r.listening
	l.mu.Lock()
	defer l.mu.Unlock()
	was := r.state
	r.state, r.tried = next, true
	r.out, r.expected = nil, nil
	if ctx.Err() != nil {
		return // nobody listens any more, or another listener does
	}
	if was == up {
		l.lose(r.number, r.proof)
		l.log.Warn("a lock master is not listened to any more; it is dialled anew", "master", r.master.Name(), "error", why)
	}
	l.settleAll()
}

// ask has the master tell of a topic, with mu held.
func (r *listener) ask(sub *subscription) {
	switch {
	case r.state != up:
	case sub.topic.kind == ofChanges && !r.resp3:
		r.listening.refuse(sub, r.number)
	default:
		r.expect(expectation{verb: sub.topic.verb(false), sub: sub}, sub.topic.append(nil, false))
	}
}

// askNoMore is the end of ask.
func (r *listener) askNoMore(sub *subscription) {
	if r.state == up && (sub.topic.kind != ofChanges || r.resp3) {
		r.expect(expectation{verb: sub.topic.verb(true), sub: sub, ends: true}, sub.topic.append(nil, true))
	}
}

// expect queues a question.
func (r *listener) expect(e expectation, frame []byte) {
	e.sent = time.Now()
	r.expected = append(r.expected, e)
	r.out = append(r.out, frame...)
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// serve runs reader and writer until the connection ends and returns why. It
// owns conn.
func (r *listener) serve(ctx context.Context, conn net.Conn, reader *resp.Reader, server string) error {
	stopClosing := context.AfterFunc(ctx, func() { conn.Close() })
	defer stopClosing()
	ended := make(chan struct{})
	var failure error
	go func() {
		defer close(ended)
		failure = stream.Contain(r.listening.log, func() error { return r.read(reader) })
	}()
	err := stream.Contain(r.listening.log, func() error { return r.write(conn, server, ended) })
	conn.Close()
	<-ended
	return errors.Join(err, failure)
}

// write sends what is queued, and a PING from time to time, until the reader
// has ended, an answer is overdue, or the master is another server.
func (r *listener) write(conn net.Conn, server string, ended <-chan struct{}) error {
	tick := time.NewTicker(r.listening.stall() / 4)
	defer tick.Stop()
	for {
		r.listening.mu.Lock()
		out := r.out
		r.out = nil
		overdue := len(r.expected) > 0 && time.Since(r.expected[0].sent) > r.listening.stall()
		r.listening.mu.Unlock()
		switch {
		case overdue:
			return errSilent
		case server != r.master.Name():
			return errReplaced
		case len(out) > 0:
			conn.SetWriteDeadline(time.Now().Add(r.listening.stall()))
			if _, err := conn.Write(out); err != nil {
				return err
			}
			continue
		}
		select {
		case <-r.wake:
		case <-tick.C:
			r.listening.mu.Lock()
			r.expect(expectation{verb: "ping"}, resp.AppendCommand(nil, "PING"))
			r.listening.mu.Unlock()
		case <-ended:
			return nil
		}
	}
}

// read hears what the master sends until the connection ends.
func (r *listener) read(reader *resp.Reader) error {
	var frames [][]byte
	for {
		first, err := reader.Wait()
		if err != nil {
			return err
		}
		if !first {
			continue
		}
		now := time.Now()
		r.listening.arrived(r.number, now)
		if frames, err = reader.Next(frames[:0], 1); err != nil {
			return err
		}
		if err := r.hear(frames[0], now); err != nil {
			return err
		}
		reader.Discard()
	}
}

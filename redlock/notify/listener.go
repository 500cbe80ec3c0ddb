package notify

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"redlock-proxy/redlock/loop"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/stream"
)

// A listener is the one connection to a master on which the master reports what happens.
// Its goroutines belong to the Hub.
type listener struct {
	hub    *Hub
	master Source
	number int
	wake   chan struct{} // wakes the writer: out is not empty

	// Guarded by hub.mu:
	state    listenerState
	resp3    bool
	out      []byte
	expected []expectation // outstanding answers, oldest first
	// proof is the time at which we asked the question that the master has answered last.
	// Everything that the master published before then has been received.
	proof   time.Time
	arrived time.Time // when anything last came
	warned  bool      // a refusal of the master was logged
}

type listenerState uint8

const (
	opening  listenerState = iota // no attempt to connect has ended
	dialling                      // again, at once
	up
	down // between two dials
)

// An expectation is an outstanding answer.
type expectation struct {
	feed *feed // nil: a PING
	ends bool  // the feed
	sent time.Time
}

func (e expectation) verb() string {
	if e.feed == nil {
		return "ping"
	}
	return e.feed.verb(e.ends)
}

var (
	errSilent   = errors.New("no answer")
	errReplaced = errors.New("another server has become this master")
	errAnswer   = errors.New("the master's answer does not match the question")
)

// maxHearing bounds one message. Redis ends a connection when more than 32 MB of messages
// wait for it, unless it is configured otherwise.
const maxHearing = 64 << 20

// run keeps the connection open until ctx ends.
func (r *listener) run(ctx context.Context) {
	redial := stream.Backoff{Loop: r.hub.loop}
	var lost error // why the last connection ended, until the next attempt; nil: there was none, or the master is away
	for ctx.Err() == nil {
		server := r.master.Name()
		c, err := r.connect(ctx)
		if err == nil && lost != nil && !errors.Is(lost, errReplaced) {
			r.hub.log.Warn("the connection that listens to a lock master had ended, and the master answers at once; check its client-output-buffer-limit for pubsub, and who kills clients there",
				"master", server, "error", lost)
		}
		if lost = nil; err == nil {
			began := time.Now()
			err = r.serve(ctx, c.Conn, c.Reader, server)
			lost = err
			if redial.AtOnce(err, time.Since(began)) {
				r.ended(ctx, dialling)
				continue
			}
		}
		r.ended(ctx, down)
		r.hub.loop.Wait(redial.Pause(), ctx.Done())
	}
}

// connect dials, and asks for what is wanted.
func (r *listener) connect(ctx context.Context) (*stream.Connection, error) {
	ctx, cancel := context.WithTimeout(ctx, r.hub.stall())
	defer cancel()
	c, err := stream.Connect(ctx, r.master.Server(), stream.Handshake{Pushes: true, Loop: r.hub.loop})
	if err != nil {
		return nil, err
	}
	c.Reader.SetLimit(maxHearing)
	if c.NoPushes != nil {
		r.warn("HELLO 3", c.NoPushes)
	}
	r.begin(c.NoPushes == nil && !r.master.Embedded(), time.Now())
	r.hub.log.Debug("listening to a lock master", "master", r.master.Name())
	return c, nil
}

// warn logs once that the master refuses to report something.
func (r *listener) warn(refused string, reply []byte) {
	r.hub.mu.Lock()
	warned := r.warned
	r.warned = true
	r.hub.mu.Unlock()
	if !warned {
		r.hub.log.Error("a lock master refuses what wakes waiting clients, so they poll or wait longer; use Redis 6 or newer, and grant the proxy's user all channels and CLIENT TRACKING",
			"master", r.master.Name(), "refused", refused, "error", resp.ErrorText(reply))
	}
}

// begin takes over a new connection, and asks for what is wanted on it.
func (r *listener) begin(resp3 bool, now time.Time) {
	l := r.hub
	l.mu.Lock()
	defer l.mu.Unlock()
	if !r.current() {
		return
	}
	r.state, r.resp3, r.proof = up, resp3, now
	r.out, r.expected = nil, nil
	l.heard.begin(r.number)
	for f := range l.all() {
		f.masters[r.number].refused = f.changes && !resp3
		if f.open {
			r.ask(f)
		}
	}
	l.decide()
}

// current tells, with mu held, whether the Hub still uses this listener.
func (r *listener) current() bool {
	return r.number < len(r.hub.listeners) && r.hub.listeners[r.number] == r
}

// ended records that a connection, or an attempt at one, has ended.
func (r *listener) ended(ctx context.Context, next listenerState) {
	l := r.hub
	l.mu.Lock()
	defer l.mu.Unlock()
	was := r.state
	r.state = next
	r.out, r.expected = nil, nil
	if ctx.Err() != nil {
		return // nobody listens any more, or another listener has replaced this one
	}
	if was == up {
		l.lose(r.number, r.proof)
	}
	l.decide()
}

// ask asks the master, with mu held, to report a feed.
func (r *listener) ask(f *feed) {
	if r.state == up && (!f.changes || r.resp3) {
		r.expect(expectation{feed: f}, f.question(false))
	}
}

// askNoMore asks the master to stop reporting a feed.
func (r *listener) askNoMore(f *feed) {
	if r.state == up && (!f.changes || r.resp3) {
		r.expect(expectation{feed: f, ends: true}, f.question(true))
	}
}

// expect queues a question and its expectation.
func (r *listener) expect(e expectation, frame []byte) {
	e.sent = time.Now()
	r.expected = append(r.expected, e)
	r.out = append(r.out, frame...)
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// serve runs the reader and the writer until the connection ends. It returns why it
// ended. It owns conn.
func (r *listener) serve(ctx context.Context, conn net.Conn, reader *resp.Reader, server string) error {
	l := r.hub.loop
	defer l.OnEnd(ctx, func() { conn.Close() })()
	ended := make(chan struct{})
	var failure error
	var reading sync.WaitGroup
	l.Spawn(&reading, func() {
		defer close(ended)
		failure = stream.Contain(r.hub.log, func() error { return r.read(reader) })
	})
	err := stream.Contain(r.hub.log, func() error { return r.write(conn, server, ended) })
	conn.Close()
	l.Join(&reading)
	return errors.Join(err, failure)
}

// write sends what is queued, and a PING from time to time. It returns when the reader
// has ended, an answer is overdue and nothing else comes, or the master has become another server.
func (r *listener) write(conn net.Conn, server string, ended <-chan struct{}) error {
	pause := r.hub.stall() / 4
	ping := time.Now().Add(pause)
	for {
		r.hub.mu.Lock()
		out := r.out
		r.out = nil
		// A crowd of messages may come before an answer. A connection on which they come is not given up.
		overdue := len(r.expected) > 0 && time.Since(r.expected[0].sent) > r.hub.stall() && time.Since(r.arrived) > r.hub.stall()
		r.hub.mu.Unlock()
		switch {
		case overdue:
			return errSilent
		case server != r.master.Name():
			return errReplaced
		case len(out) > 0:
			conn.SetWriteDeadline(time.Now().Add(r.hub.stall()))
			if _, err := conn.Write(out); err != nil {
				return err
			}
			continue
		}
		switch r.hub.loop.Wait(time.Until(ping), r.wake, ended) {
		case 1:
			return nil
		case loop.Late:
			ping = time.Now().Add(pause)
			r.hub.mu.Lock()
			r.expect(expectation{}, resp.AppendCommand(nil, "PING"))
			r.hub.mu.Unlock()
		}
	}
}

// read handles what the master sends until the connection ends.
func (r *listener) read(reader *resp.Reader) error {
	var frames [][]byte
	for {
		var err error
		if frames, err = reader.Next(frames[:0], 1); err != nil {
			return err
		}
		now := time.Now()
		r.hub.arrived(r, now)
		if err := r.hear(frames[0], now); err != nil {
			return err
		}
		reader.Discard()
	}
}

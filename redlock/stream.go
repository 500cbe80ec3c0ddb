package redlock

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/roster"
	"redlock-proxy/redlock/stream"
)

// A dbStream is the one ordered connection to a master for one database: one
// writer that coalesces what is queued into one write, one reader that matches
// replies in order. Order is its point: an undo or a release can never
// overtake the acquire it follows, as it could on pooled connections. Order
// also holds across a reconnect: see connect.go.
type dbStream struct {
	owner    streamOwner
	db       int
	embedded bool
	log      *slog.Logger
	marker   []byte
	raise    func(dst []byte, longest time.Duration) []byte

	mu        sync.Mutex
	state     streamState
	conn      net.Conn
	out       []byte // encoded, not yet taken by the writer
	calls     []call // accepted and unanswered, oldest first; those before head are done
	head      int
	unwritten int               // how many of the last calls are still in out
	refuses   bool              // the last probe was refused
	probing   bool              // a probe is unanswered, or due again
	gated     bool              // a gate is unanswered, and what comes is postponed
	postponed []postponed       // what came since, oldest first
	paying    bool              // debts will be sent again in a while
	unpaid    int               // debts sent again on this connection and not answered
	debts     []*debt           // for the next connection
	debtBytes int               // what they take
	asking    int               // bytes of the calls that are unanswered
	loaded    map[string]bool   // scripts (by SHA1) this connection has loaded
	earlier   []stream.Identity // connections not known to be gone, the present one last
	longest   time.Duration     // the longest TTL that the marker has, or will have once what is queued is executed
	due       bool              // the marker is to be checked although nothing else is asked
	beaten    time.Time         // when that was asked for last
	sole      bool              // ROLE tells enough of its replication, for a while
	askedInfo time.Time         // when it was asked for all of it last

	info    []byte       // on replication, as it was read last; the reader's own
	handing atomic.Bool  // askers are being told of answers, and may send because of them
	queued  atomic.Int64 // how many more debts wait than the owner was told

	wake chan struct{} // to the writer: out is not empty, or the stream closes
}

// streamOptions are what a stream is made of.
type streamOptions struct {
	owner    streamOwner
	db       int
	embedded bool // the server is inside this process, and is not checked
	log      *slog.Logger
	// marker is the question that a batch's check begins with, of one answer.
	marker []byte
	// raise appends the command, of one answer, that puts the longest TTL on record.
	raise func(dst []byte, longest time.Duration) []byte
}

// A streamOwner is what a stream belongs to. Its methods are called from the
// stream's goroutines, never with a lock of the stream taken, but for the first four,
// which must not block nor call the stream.
type streamOwner interface {
	Name() string
	Timeout() time.Duration   // how long an answer is waited for
	MaxReply() int64          // what answers may take
	Suspended() time.Duration // for how long this machine has been suspended
	// Server is what is dialled next.
	Server() stream.Server
	// Up: a connection begins, and this is what the server says of itself.
	Up(self stream.Greeting, now time.Time)
	// Judge says whether the answers of a batch count.
	Judge(c check) judgement
	// Down: the connection has ended, or could not be opened.
	Down(why error)
	// Queued: so many more debts wait for the next connection, or fewer.
	Queued(more int64)
}

// A judgement is what the check of a batch says of its answers.
type judgement struct {
	votes  bool          // the master may vote, so they count
	covers time.Duration // the longest TTL on record of what is granted now
	// longest is the longest TTL that the marker has, if anew: the marker was read
	// anew.
	longest time.Duration
	anew    bool
}

// newStream makes a stream. Nothing is dialled before run.
func newStream(o streamOptions) *dbStream {
	return &dbStream{
		owner: o.owner, db: o.db, embedded: o.embedded, log: o.log, marker: o.marker, raise: o.raise,
		loaded: map[string]bool{}, wake: make(chan struct{}, 1),
	}
}

// close refuses all calls of a stream that will not be run.
func (s *dbStream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = closed
}

// size is how many bytes of debts wait for the next connection, and of questions for
// their answers.
func (s *dbStream) size() (waiting, asking int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.debtBytes, s.asking
}

// stall is how long a connection may stay silent with questions on it before
// it is given up and dialled anew.
func (s *dbStream) stall() time.Duration { return stallOf(s.owner.Timeout()) }

func stallOf(timeout time.Duration) time.Duration { return max(2*time.Second, 20*timeout) }

// tellQueued tells the owner how many debts wait, where that has changed.
func (s *dbStream) tellQueued() {
	if s.queued.Load() == 0 {
		return
	}
	if more := s.queued.Swap(0); more != 0 {
		s.owner.Queued(more)
	}
}

// idle tells that nothing is unanswered on a connection, and that whoever
// asked has done what the answers call for.
func (s *dbStream) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !(s.state == up && s.head < len(s.calls) || s.handing.Load())
}

// serves tells whether the master is asked at all now.
func (s *dbStream) serves(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepts() && !s.suspended(now)
}

type streamState uint8

const (
	dialling streamState = iota // calls are accepted and wait for the connection
	up
	down // between redials: calls are refused, debts kept
	closed
)

// A call is one question on a stream that waits for a known number of top-level
// replies.
type call struct {
	replies int
	check   bool // it is the check of its batch, and nobody else asked it
	role    bool // it is a check that asks ROLE, and not INFO
	asker   asker
	master  int      // the asker's own number of the master
	writes  []string // keys under which it may create a lock
	gates   bool     // it is a gate

	size int // bytes sent with it
	skip int // replies before the question's own: SCRIPT LOAD, the marker raised
	sent time.Time
	// slept is, of a check, for how long this machine had been suspended by then.
	slept time.Duration
}

// A sending is what a call puts into the stream. It is not kept.
type sending struct {
	frames  []byte
	load    []loadable    // scripts the master must know before
	creates bool          // it may create a lock
	lives   time.Duration // the TTL of that; the marker must know of one as long
}

// An asker hears of its call exactly once, from the stream's reader (or the
// goroutine that ends a connection): the replies, which are good during the call
// only, and what its batch's check said, or an error. It must not block.
type asker interface {
	answered(s *dbStream, c *call, replies [][]byte, j judgement, err error)
	// owed is what the master must still be told if the connection breaks before
	// the answer; nil if nothing.
	owed(c *call) *debt
}

// askerFunc is an asker that only wants to know the answer.
type askerFunc func(replies [][]byte, j judgement, err error)

func (f askerFunc) answered(_ *dbStream, _ *call, replies [][]byte, j judgement, err error) {
	f(replies, j, err)
}

func (f askerFunc) owed(*call) *debt { return nil }

// loadable is a script text that must be known to the master before the call.
type loadable struct {
	sha  string
	text []byte
}

func newLoadable(text []byte) loadable {
	sum := sha1.Sum(text)
	return loadable{sha: hex.EncodeToString(sum[:]), text: text}
}

// A call that ends with errLost may or may not have been executed; one that
// ends with errUnsent was certainly not.
var (
	errLost   = errors.New("connection lost before the answer")
	errUnsent = errors.New("connection lost before the question was sent")
)

// maxLoaded bounds how many scripts are known to be loaded. Beyond it they are
// loaded again, which a flood of ever new scripts pays for.
const maxLoaded = 1 << 12

// maxCalls bounds what may wait unanswered on one stream.
const maxCalls = 1 << 16

// maxAsking bounds the bytes of all that waits unanswered. One call may exceed
// it, for it may be as large as clients like.
const maxAsking = 32 << 20

// send queues a call. False means the master cannot be asked now: it is away,
// or, for a call that may create a lock, it is suspended, or has no room for the
// undo this may need.
func (s *dbStream) send(c call, m sending, now time.Time) bool {
	defer s.tellQueued()
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.creates && !s.mayCreate(now) || !s.accepts() {
		return false
	}
	var first []byte
	if m.lives > s.longest && !s.embedded {
		first = s.raise(first, m.lives)
		s.longest = m.lives
		c.skip++
	}
	for _, script := range m.load {
		if !s.loaded[script.sha] {
			if len(s.loaded) >= maxLoaded {
				clear(s.loaded)
			}
			first = resp.AppendCommand(first, []byte("SCRIPT"), []byte("LOAD"), script.text)
			s.loaded[script.sha] = true
			c.skip++
		}
	}
	if first != nil {
		m.frames = append(first, m.frames...)
	}
	s.push(c, m.frames, now)
	return true
}

// accepts tells, with s.mu held, whether a call can be queued.
func (s *dbStream) accepts() bool {
	return s.state < down && len(s.calls)-s.head+len(s.postponed) < maxCalls && s.asking < maxAsking
}

// push queues a call, with s.mu held, behind a gate that is unanswered.
func (s *dbStream) push(c call, frames []byte, now time.Time) {
	c.size += len(frames)
	s.asking += c.size
	if s.gated {
		s.postponed = append(s.postponed, postponed{c, bytes.Clone(frames)})
		return
	}
	s.queue(c, frames, now)
}

// queue hands a call to the writer, with s.mu held.
func (s *dbStream) queue(c call, frames []byte, now time.Time) {
	c.sent = now
	s.out = append(s.out, frames...)
	s.calls = append(s.calls, c)
	s.unwritten++
	s.gated = s.gated || c.gates
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// payDebts sends what was kept while the master was away or could not serve.
func (s *dbStream) payDebts(now time.Time) {
	if s.state >= down {
		return
	}
	for _, d := range s.debts {
		s.push(call{replies: 1, asker: &payment{d, true}}, d.append(nil, now, true, s.owner.Timeout()), now)
	}
	s.unpaid += len(s.debts)
	s.clearDebts()
}

// clearDebts forgets, with s.mu held, what was kept for the next connection.
func (s *dbStream) clearDebts() {
	s.queued.Add(-int64(len(s.debts)))
	s.debts, s.debtBytes = nil, 0
}

// payLater sends debts that the master could not serve once more after a while,
// also if nobody asks it anything.
func (s *dbStream) payLater() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paying {
		return
	}
	s.paying = true
	time.AfterFunc(debtPause, func() {
		stream.Contained(s.log, func() {
			defer s.tellQueued()
			s.mu.Lock()
			defer s.mu.Unlock()
			s.paying = false
			s.payDebts(time.Now())
		})
	})
}

const debtPause = 100 * time.Millisecond

// mayCreate keeps three rules: a master that stopped answering is not asked for
// locks, nor one whose debts are not settled, nor one that refuses what they need.
func (s *dbStream) mayCreate(now time.Time) bool {
	if s.state == up && s.stalled(now) {
		s.conn.Close() // a cut network does not say so by itself
		return false
	}
	if s.state == up && len(s.debts)+s.unpaid > 0 {
		s.payDebts(now) // which must not meet the lock that this may create
		return false
	}
	return !s.refuses && !s.suspended(now) && len(s.debts)+len(s.calls)-s.head < maxDebts && s.debtBytes < maxDebtBytes
}

// suspended tells, with s.mu held, whether the master has stopped answering.
func (s *dbStream) suspended(now time.Time) bool {
	return s.head < len(s.calls) && now.Sub(s.calls[s.head].sent) > s.owner.Timeout()
}

// deliver sends a debt now if the stream can, in order behind all that was
// sent before, and otherwise keeps it for the next connection. Later means
// that it has been kept before.
func (s *dbStream) deliver(d *debt, now time.Time, later bool) {
	m := sending{frames: d.append(nil, now, later, s.owner.Timeout())}
	if !s.send(call{replies: 1, asker: &payment{d, false}}, m, now) {
		s.owe(d)
	}
}

// owe keeps a debt for the next connection. A full queue drops it: the key is
// then left to its TTL.
func (s *dbStream) owe(d *debt) {
	defer s.tellQueued()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != closed {
		s.keep(d)
	}
}

// keep takes, with s.mu held, a debt for the next connection if there is room.
func (s *dbStream) keep(d *debt) {
	if len(s.debts) >= maxDebts || s.debtBytes >= maxDebtBytes {
		return
	}
	s.debts = append(s.debts, d)
	s.debtBytes += d.size()
	s.queued.Add(1)
}

// answer ends the oldest calls, a whole batch, with their replies. Where an asker
// panics, the others are calls again whose answers never came.
func (s *dbStream) answer(batch []call, replies [][]byte, j judgement) {
	s.handing.Store(true)
	defer s.handing.Store(false)
	s.end(batch, replies)
	s.tellQueued()
	told := 0
	defer func() {
		if told < len(batch) {
			s.resume(batch[told:])
		}
	}()
	for at, i := 0, 0; i < len(batch); i++ {
		c := &batch[i]
		from := at + c.skip
		at = from + c.replies
		if !c.check {
			s.tell(c, replies[from:at], j)
		}
		told++
	}
}

// resume makes calls of a batch unanswered again, for a connection that is about
// to end. The first has heard its answer, and only what it is owed may still count.
func (s *dbStream) resume(calls []call) {
	calls = slices.Clone(calls)
	if first := &calls[0]; !first.check {
		first.asker = deafAsker{first.asker}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls, s.head = append(calls, s.calls[s.head:]...), 0
}

// deafAsker is an asker that has heard its answer.
type deafAsker struct{ asker }

func (deafAsker) answered(*dbStream, *call, [][]byte, judgement, error) {}

// end takes a batch that was answered out of the calls.
func (s *dbStream) end(batch []call, replies [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.calls[s.head : s.head+len(batch)])
	s.head += len(batch)
	if s.head == len(s.calls) {
		s.calls, s.head = s.calls[:0], 0
	} else if s.head > 1024 && s.head*2 > len(s.calls) {
		left := copy(s.calls, s.calls[s.head:])
		clear(s.calls[left:])
		s.calls, s.head = s.calls[:left], 0
	}
	serves := false
	for at, i := 0, 0; i < len(batch); i++ {
		c := &batch[i]
		if slices.ContainsFunc(replies[at:at+c.skip], resp.IsError) {
			clear(s.loaded) // not loaded after all, or the marker not raised
			s.longest = 0
		}
		at += c.skip + c.replies
		s.asking -= c.size
		serves = serves || !resp.CannotServe(replies[at-1])
	}
	if len(s.debts) > 0 && serves {
		s.payDebts(time.Now()) // the master can serve again
	}
}

// silent tells whether the master leaves questions unanswered.
func (s *dbStream) silent(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state == up && s.suspended(now)
}

// beat asks for a check if there was none for a while, or at any rate. It
// tells whether the master leaves questions unanswered.
func (s *dbStream) beat(now time.Time, always bool) (hung bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	hung = s.state == up && s.suspended(now)
	if s.state != up || !always && (s.head < len(s.calls) || now.Sub(s.beaten) < roster.BeatPause) {
		return hung
	}
	s.beaten, s.due = now, true
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return hung
}

// forgetScripts: somebody flushed the master's scripts, so load them again.
func (s *dbStream) forgetScripts() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.loaded)
}

// giveUp ends a connection that is out of step.
func (s *dbStream) giveUp(why error) {
	s.mu.Lock()
	gives := s.state == up
	if gives {
		s.conn.Close()
	}
	s.mu.Unlock()
	if gives {
		s.log.Error("giving up a connection to a lock master", "master", s.owner.Name(), "db", s.db, "error", why)
	}
}

// stalled tells, with s.mu held, whether a call has waited so long that the
// connection must be dialled anew.
func (s *dbStream) stalled(now time.Time) bool {
	return s.head < len(s.calls) && now.Sub(s.calls[s.head].sent) > s.stall()
}

// giveUpIfStalled ends a connection that has been silent for too long.
func (s *dbStream) giveUpIfStalled(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == up && s.stalled(now) {
		s.conn.Close()
	}
}

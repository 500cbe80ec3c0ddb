package stream

import (
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/redlock/resp"
)

// A Stream is the one ordered connection to a master for one database: one
// writer that coalesces what is queued into one write, one reader that matches
// replies in order. Order is its point: an undo or a release can never
// overtake the acquire it follows, as it could on pooled connections. Order
// also holds across a reconnect: see connect.go.
type Stream struct {
	owner    Owner
	db       int
	embedded bool
	log      *slog.Logger
	marker   []byte
	raise    func(dst []byte, longest time.Duration) []byte
	pause    time.Duration

	mu        sync.Mutex
	state     connectionState
	conn      net.Conn
	out       []byte // encoded, not yet taken by the writer
	calls     []Call // accepted and unanswered, oldest first; those before head are done
	head      int
	unwritten int             // how many of the last calls are still in out
	refuses   bool            // the last probe was refused
	probing   bool            // a probe is unanswered, or due again
	gated     bool            // a gate is unanswered, and what comes is postponed
	postponed []postponed     // what came since, oldest first
	paying    bool            // debts will be sent again in a while
	unpaid    int             // debts sent again on this connection and not answered
	debts     []*Debt         // for the next connection
	debtBytes int             // what they take
	asking    int             // bytes of the calls that are unanswered
	loaded    map[string]bool // scripts (by SHA1) this connection has loaded
	earlier   []identity      // connections not known to be gone, the present one last
	longest   time.Duration   // the longest TTL that the marker has, or will have once what is queued is executed
	due       bool            // the marker is to be checked although nothing else is asked
	beaten    time.Time       // when that was asked for last
	sole      bool            // ROLE tells enough of its replication, for a while
	askedInfo time.Time       // when it was asked for all of it last

	info    []byte       // on replication, as it was read last; the reader's own
	handing atomic.Bool  // askers are being told of answers, and may send because of them
	queued  atomic.Int64 // how many more debts wait than the owner was told

	wake chan struct{} // to the writer: out is not empty, or the stream closes
}

// Options are what a stream is made of.
type Options struct {
	Owner    Owner
	DB       int
	Embedded bool // the server is inside this process, and is not checked
	Log      *slog.Logger
	// Marker is the question that a batch's check begins with, of one answer.
	Marker []byte
	// Pause is how often a master is checked that is asked nothing else.
	Pause time.Duration
	// Raise appends the command, of one answer, that puts the longest TTL on record.
	Raise func(dst []byte, longest time.Duration) []byte
}

// An Owner is what a stream belongs to. Its methods are called from the
// stream's goroutines, never with a lock of the stream taken, but for the first four,
// which must not block nor call the stream.
type Owner interface {
	Name() string
	Timeout() time.Duration   // how long an answer is waited for
	MaxReply() int64          // what answers may take
	Suspended() time.Duration // for how long this machine has been suspended
	// Server is what is dialled next.
	Server() Server
	// Up: a connection begins, and this is what the server says of itself.
	Up(self Greeting, now time.Time)
	// Judge says whether the answers of a batch count.
	Judge(c Check) Judgement
	// Down: the connection has ended, or could not be opened.
	Down(why error)
	// Queued: so many more debts wait for the next connection, or fewer.
	Queued(more int64)
}

// A Judgement is what the check of a batch says of its answers.
type Judgement struct {
	Votes  bool          // the master may vote, so they count
	Covers time.Duration // the longest TTL on record of what is granted now
	// Longest is the longest TTL that the marker has, if Anew: the marker was read
	// anew.
	Longest time.Duration
	Anew    bool
}

// New makes a stream. Nothing is dialled before run.
func New(o Options) *Stream {
	return &Stream{
		owner: o.Owner, db: o.DB, embedded: o.Embedded, log: o.Log, marker: o.Marker, pause: o.Pause, raise: o.Raise,
		loaded: map[string]bool{}, wake: make(chan struct{}, 1),
	}
}

// Close refuses all calls of a stream that will not be run.
func (s *Stream) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = closed
}

// Size is how many bytes of debts wait for the next connection, and of questions for
// their answers.
func (s *Stream) Size() (waiting, asking int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.debtBytes, s.asking
}

// stall is how long a connection may stay silent with questions on it before
// it is given up and dialled anew.
func (s *Stream) stall() time.Duration { return Stall(s.owner.Timeout()) }

// Stall is how long that is where an answer is waited for by so long.
func Stall(timeout time.Duration) time.Duration { return max(2*time.Second, 20*timeout) }

// tellQueued tells the owner how many debts wait, where that has changed.
func (s *Stream) tellQueued() {
	if s.queued.Load() == 0 {
		return
	}
	if more := s.queued.Swap(0); more != 0 {
		s.owner.Queued(more)
	}
}

// Idle tells that nothing is unanswered on a connection, and that whoever
// asked has done what the answers call for.
func (s *Stream) Idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !(s.state == up && s.head < len(s.calls) || s.handing.Load())
}

// Serves tells whether the master is asked at all now.
func (s *Stream) Serves(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepts() && !s.suspended(now)
}

type connectionState uint8

const (
	dialling connectionState = iota // calls are accepted and wait for the connection
	up
	down // between redials: calls are refused, debts kept
	closed
)

// payDebts sends what was kept while the master was away or could not serve.
func (s *Stream) payDebts(now time.Time) {
	if s.state >= down {
		return
	}
	for _, d := range s.debts {
		s.push(Call{Replies: 1, Asker: &payment{d, true}}, d.append(nil, now, true, s.owner.Timeout()), now)
	}
	s.unpaid += len(s.debts)
	s.clearDebts()
}

// clearDebts forgets, with s.mu held, what was kept for the next connection.
func (s *Stream) clearDebts() {
	s.queued.Add(-int64(len(s.debts)))
	s.debts, s.debtBytes = nil, 0
}

// payLater sends debts that the master could not serve once more after a while,
// also if nobody asks it anything.
func (s *Stream) payLater() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paying {
		return
	}
	s.paying = true
	time.AfterFunc(debtPause, func() {
		Contained(s.log, func() {
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
func (s *Stream) mayCreate(now time.Time) bool {
	if s.state == up && s.stalled(now) {
		s.conn.Close() // a cut network does not say so by itself
		return false
	}
	if s.state == up && len(s.debts)+s.unpaid > 0 {
		s.payDebts(now) // which must not meet the lock that this may create
		return false
	}
	return !s.refuses && !s.suspended(now) && len(s.debts)+len(s.calls)-s.head < maxDebts && s.debtBytes < MaxDebtBytes
}

// suspended tells, with s.mu held, whether the master has stopped answering.
func (s *Stream) suspended(now time.Time) bool {
	return s.head < len(s.calls) && now.Sub(s.calls[s.head].sent) > s.owner.Timeout()
}

// Deliver sends a debt now if the stream can, in order behind all that was
// sent before, and otherwise keeps it for the next connection. Later means
// that it has been kept before.
func (s *Stream) Deliver(d *Debt, now time.Time, later bool) {
	m := Sending{Frames: d.append(nil, now, later, s.owner.Timeout())}
	if !s.Send(Call{Replies: 1, Asker: &payment{d, false}}, m, now) {
		s.Owe(d)
	}
}

// Owe keeps a debt for the next connection. A full queue drops it: the key is
// then left to its TTL.
func (s *Stream) Owe(d *Debt) {
	defer s.tellQueued()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != closed {
		s.keep(d)
	}
}

// keep takes, with s.mu held, a debt for the next connection if there is room.
func (s *Stream) keep(d *Debt) {
	if len(s.debts) >= maxDebts || s.debtBytes >= MaxDebtBytes {
		return
	}
	s.debts = append(s.debts, d)
	s.debtBytes += d.size()
	s.queued.Add(1)
}

// answer ends the oldest calls, a whole batch, with their replies. Where an asker
// panics, the others are calls again whose answers never came.
func (s *Stream) answer(batch []Call, replies [][]byte, j Judgement) {
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
		at = from + c.Replies
		if !c.check {
			s.tell(c, replies[from:at], j)
		}
		told++
	}
}

// resume makes calls of a batch unanswered again, for a connection that is about
// to end. The first has heard its answer, and only what it is owed may still count.
func (s *Stream) resume(calls []Call) {
	calls = slices.Clone(calls)
	if first := &calls[0]; !first.check {
		first.Asker = deafAsker{first.Asker}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls, s.head = append(calls, s.calls[s.head:]...), 0
}

// deafAsker is an asker that has heard its answer.
type deafAsker struct{ Asker }

func (deafAsker) Answered(*Stream, *Call, [][]byte, Judgement, error) {}

// end takes a batch that was answered out of the calls.
func (s *Stream) end(batch []Call, replies [][]byte) {
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
		at += c.skip + c.Replies
		s.asking -= c.size
		serves = serves || !resp.CannotServe(replies[at-1])
	}
	if len(s.debts) > 0 && serves {
		s.payDebts(time.Now()) // the master can serve again
	}
}

// Silent tells whether the master leaves questions unanswered.
func (s *Stream) Silent(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state == up && s.suspended(now)
}

// Beat asks for a check if there was none for a while, or at any rate. It
// tells whether the master leaves questions unanswered.
func (s *Stream) Beat(now time.Time, always bool) (hung bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	hung = s.state == up && s.suspended(now)
	if s.state != up || !always && (s.head < len(s.calls) || now.Sub(s.beaten) < s.pause) {
		return hung
	}
	s.beaten, s.due = now, true
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return hung
}

// ForgetScripts: somebody flushed the master's scripts, so load them again.
func (s *Stream) ForgetScripts() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.loaded)
}

// GiveUp ends a connection that is out of step.
func (s *Stream) GiveUp(why error) {
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
func (s *Stream) stalled(now time.Time) bool {
	return s.head < len(s.calls) && now.Sub(s.calls[s.head].sent) > s.stall()
}

// GiveUpIfStalled ends a connection that has been silent for too long.
func (s *Stream) GiveUpIfStalled(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == up && s.stalled(now) {
		s.conn.Close()
	}
}

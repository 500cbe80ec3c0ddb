package stream

import (
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/redlock/loop"
	"redlock-proxy/redlock/resp"
)

// A Stream is the one ordered connection to a master for one database. Its link combines
// all queued calls into one write, and matches replies to calls in order.
// The order is the purpose of a Stream: an undo or a release can never overtake the
// acquire before it, as it could on pooled connections. The order also holds across a
// reconnect: see connect.go.
type Stream struct {
	owner    Owner
	db       int
	embedded bool
	loop     *loop.Loop
	log      *slog.Logger
	marker   string // the key of the marker
	check    []byte // the command that reads it
	raise    func(dst []byte, longest time.Duration) []byte
	pause    time.Duration

	mu        sync.Mutex
	state     connectionState
	link      *link  // nil: there is no connection
	out       []byte // encoded calls that the link has not taken yet
	calls     []Call // accepted, oldest first; those from head on are unanswered
	head      int
	unwritten int             // number of the last calls whose bytes are still in out
	refuses   bool            // the master refused the last probe
	probing   bool            // a probe is unanswered
	probed    time.Time       // when the last one was sent on this connection
	gated     bool            // a gate is unanswered, so new calls are postponed
	postponed []postponed     // the calls behind the gate, oldest first
	unpaid    int             // debts sent again on this connection and unanswered
	debts     []*Debt         // kept for the next connection
	debtBytes int             // the size of debts
	asking    int             // bytes of the unanswered calls
	loaded    map[string]bool // scripts (by SHA1) this connection has loaded
	earlier   []identity      // connections that may still be open, the present one last
	longest   time.Duration   // the longest TTL in the marker, after all queued calls are executed
	due       bool            // the next write checks the marker, even if no call is queued
	arrived   time.Time       // when bytes of an answer came that is not whole
	sole      bool            // for infoPause, ROLE alone is enough to check the replication
	askedInfo time.Time       // when INFO replication was sent last

	info    []byte      // INFO replication as read last; only handOut uses it
	handing atomic.Bool // askers are being called, and may send new calls
}

// Options configure a Stream.
type Options struct {
	Owner    Owner
	DB       int
	Embedded bool       // the server runs inside this process, and its batches end with no check
	Loop     *loop.Loop // reads and writes the connection
	Log      *slog.Logger
	// Marker is the key of the marker. Each check begins with its GET.
	Marker string
	// Pause is the shortest time between two probes. A check is behind each.
	Pause time.Duration
	// Raise appends the command that records the longest TTL in the marker. The command
	// must have one reply. An error or 0 says that nothing was recorded.
	Raise func(dst []byte, longest time.Duration) []byte
}

// An Owner is the master that a stream belongs to. The stream's goroutines call its
// methods. They hold no lock of the stream, except for the first four methods. Those four
// must neither block nor call the stream.
type Owner interface {
	Name() string
	Timeout() time.Duration   // how long a call may wait for its answer
	MaxReply() int64          // the longest reply in bytes; a longer one is dropped (ErrTooLong)
	Suspended() time.Duration // total time that this machine has been suspended
	// Server returns the server to dial next.
	Server() Server
	// Up is called when a connection begins. self is what the server said about itself.
	Up(self Greeting, now time.Time)
	// Judge says whether the answers of a batch count.
	Judge(c Check) Judgement
	// Refuses is called with the answer to each probe: the master's error, or nil if it refuses
	// nothing that locks need. It is called where Judge is.
	Refuses(refusal []byte)
	// Down is called when the connection has ended or could not be opened.
	Down(why error)
}

// A Judgement is the Owner's decision about the answers of a batch.
type Judgement struct {
	Votes   bool          // the master may vote, so the answers count
	Masters int           // ...in ballots of so many masters; 0: in all
	Covers  time.Duration // a lock granted now must not have a longer TTL than this
	// Longest is the longest TTL in the marker. It is valid only if Anew is true: the
	// owner has just read the marker anew.
	Longest time.Duration
	Anew    bool
	// Received is when the whole batch had been read, so no answer came later. The stream
	// sets it. An earlier time would be unsafe: a late answer would pass for one in time, and
	// a lock would seem to last for longer than it does. It is zero if nothing was read.
	Received time.Time
}

// New makes a Stream. It dials nothing before Run.
func New(o Options) *Stream {
	return &Stream{
		owner: o.Owner, db: o.DB, embedded: o.Embedded, loop: o.Loop, log: o.Log, pause: o.Pause, raise: o.Raise,
		marker: o.Marker, check: resp.AppendCommand(nil, "GET", o.Marker),
		loaded: map[string]bool{},
	}
}

// stall is how long a connection may leave a call unanswered while no bytes come. After that
// the stream closes it and dials anew.
func (s *Stream) stall() time.Duration { return Stall(s.owner.Timeout()) }

// Stall returns how long a connection may leave a call unanswered, if a ballot waits for
// timeout.
func Stall(timeout time.Duration) time.Duration { return max(2*time.Second, 20*timeout) }

// Idle tells whether no call is unanswered on the connection and all askers have
// returned.
func (s *Stream) Idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !(s.state == up && s.head < len(s.calls) || s.handing.Load())
}

// Queued returns the number of debts that wait for the master.
func (s *Stream) Queued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.debts)
}

// Serves tells whether the stream accepts calls now and the master answers them in time.
func (s *Stream) Serves(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepts() && !s.suspended(now)
}

type connectionState uint8

const (
	dialling connectionState = iota // calls are accepted, and wait for the connection
	up
	down // between two dials: calls are refused, debts are kept
	closed
)

// mayCreate, with s.mu held, keeps three rules. The stream asks for no lock if the master
// has stopped answering, has unsettled debts, or refuses what locks need.
func (s *Stream) mayCreate(now time.Time) bool {
	if s.state == up && len(s.debts)+s.unpaid > 0 {
		s.payDebts(now) // they must not meet the lock that this call may create
		return false
	}
	if len(s.debts) > mostPaid {
		return false // the next connection does not begin with all of them
	}
	return !s.refuses && !s.suspended(now) && len(s.debts)+len(s.calls)-s.head < maxDebts && s.debtBytes < maxDebtBytes
}

// suspended tells, with s.mu held, whether the oldest call has waited longer than the
// timeout.
func (s *Stream) suspended(now time.Time) bool {
	return s.waited(now) > s.owner.Timeout()
}

// waited returns, with s.mu held, for how long the oldest call has waited.
func (s *Stream) waited(now time.Time) time.Duration {
	if s.head == len(s.calls) {
		return 0
	}
	return now.Sub(s.calls[s.head].sent)
}

// answer hands out the replies of a whole batch, the oldest calls. If an asker panics, the
// connection must end.
func (s *Stream) answer(batch []Call, replies [][]byte, j Judgement) (defect error) {
	s.handing.Store(true)
	defer s.handing.Store(false)
	s.end(batch, replies)
	for at, i := 0, 0; i < len(batch); i++ {
		c := &batch[i]
		from := at + c.skip
		at = from + c.Replies
		if c.check {
			continue
		}
		if err := s.contain(c, func() { s.tell(c, replies[from:at], j) }); err != nil {
			defect = err
		}
	}
	return defect
}

// contain tells the asker of a call. If it panics, the stream keeps the debt of the call.
func (s *Stream) contain(c *Call, tell func()) (defect error) {
	if defect = Contain(s.log, func() error { tell(); return nil }); defect != nil {
		if d := s.debtOf(c); d != nil {
			s.Owe(d)
		}
	}
	return defect
}

// end removes an answered batch from the calls.
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
		if before := replies[at : at+c.skip]; slices.ContainsFunc(before, isRefusal) {
			// rule: a marker that could not be raised is raised later
			s.longest = 0 // the marker was not raised
			if slices.ContainsFunc(before, resp.IsError) {
				clear(s.loaded) // or SCRIPT LOAD failed
			}
		}
		at += c.skip + c.Replies
		s.asking -= c.size
		serves = serves || !resp.CannotServe(replies[at-1])
	}
	if len(s.debts) > 0 && serves {
		s.payDebts(time.Now()) // the master can serve again
	}
}

// isRefusal tells whether a reply to SCRIPT LOAD or to Options.Raise says that it was not done.
func isRefusal(reply []byte) bool {
	n, isInteger := resp.ParseInteger(reply)
	return resp.IsError(reply) || isInteger && n <= 0
}

// Silent tells whether the connection is up and the master leaves calls unanswered.
func (s *Stream) Silent(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state == up && s.suspended(now)
}

// Beat gives up a connection that leaves a call unanswered for too long, because a cut
// network reports no error by itself. A large answer may take longer, if its bytes come. Beat
// sends the debts again that the master could not serve. It probes the master if the last probe
// is older than Options.Pause, and asks for a check in any case if always is set.
func (s *Stream) Beat(now time.Time, always bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != up {
		return
	}
	// A connection on which bytes come is not given up.
	if stall := s.stall(); s.waited(now) > stall && now.Sub(s.arrived) > stall {
		s.link.close()
		return
	}
	s.payDebts(now)
	if now.Sub(s.probed) >= s.pause {
		s.probe(now)
	}
	if always {
		s.due = true
		s.wake()
	}
}

// ForgetScripts makes the stream load scripts again. It is for a master whose scripts
// were flushed.
func (s *Stream) ForgetScripts() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.loaded)
}

// GiveUp closes a connection whose replies do not match its calls. The stream dials anew.
func (s *Stream) GiveUp(why error) {
	s.mu.Lock()
	gives := s.state == up
	if gives {
		s.link.close()
	}
	s.mu.Unlock()
	if gives {
		s.log.Error("giving up a connection to a lock master; check what listens at its address", "master", s.owner.Name(), "db", s.db, "error", why)
	}
}

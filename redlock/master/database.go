package master

import (
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/roster"
	"redlock-proxy/redlock/stream"
)

// A database is one database of a master: its stream and its last known state. It is the
// stream's Owner, and its exported methods are those of stream.Owner.
type database struct {
	*stream.Stream
	master *Master
	db     int

	checked checked     // only Up and the stream's reader use it
	hung    atomic.Bool // the roster knows that the master does not answer
	latest  lastReading
	silence silence // only certify uses it
}

// A reading is what every answered check tells. The rest of the marker mostly stays the same.
type reading struct {
	at    time.Time // when the check was sent
	token int64     // the fencing token in the marker
}

// A lastReading is the reading of the last answered check. It keeps the monotonic part of its
// time: rules of the roster compare these times, and a step of this machine's wall clock must
// not look like time that has passed.
type lastReading struct {
	mu      sync.Mutex
	reading reading
}

func (l *lastReading) store(r reading) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reading = r
}

func (l *lastReading) load() reading {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reading
}

func newDatabase(m *Master, db int) *database {
	s := &database{master: m, db: db}
	s.Stream = stream.New(stream.Options{
		Owner: s, DB: db, Embedded: m.Embedded(), Loop: m.loop, Log: m.log,
		Marker: marker.Key, Pause: roster.BeatPause / 2, // with the time until the next Beat it is less than BeatPause
		Raise: func(dst []byte, longest time.Duration) []byte { return AppendRaise(dst, db, longest) },
	})
	return s
}

func (s *database) place() roster.Place { return roster.Place{Master: s.master.number, DB: s.db} }

func (s *database) Name() string { return s.master.Name() }

func (s *database) Timeout() time.Duration { return s.master.limits.Load().MasterTimeout }

func (s *database) MaxReply() int64 { return s.master.limits.Load().MaxReply }

func (s *database) Suspended() time.Duration { return s.master.slumber.last() }

func (s *database) Server() stream.Server { return s.master.Server() }

// Up tells the roster what a server says about itself on a new connection.
func (s *database) Up(self stream.Greeting, now time.Time) {
	m, p := s.master, s.place()
	s.checked = checked{}
	m.voters.step(roster.Connected{Place: p, Run: self.RunID, Problem: self.Problem, Replication: readReplication(self.Info)}, now)
	m.clock.isOf(self.RunID)
	if s.db == 0 {
		m.evictionAsked.Store(0)
	}
	if m.Embedded() {
		m.tell(s.db, roster.Standing{State: roster.Voting}, now)
	}
	m.log.Debug("connected to lock master", "master", m.Name(), "db", s.db)
}

// Down tells the roster why the master is unreachable.
func (s *database) Down(why error) {
	s.master.voters.step(roster.Disconnected{Place: s.place(), Reason: absence(why)}, time.Now())
}

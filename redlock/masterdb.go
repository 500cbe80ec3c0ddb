package redlock

import (
	"sync/atomic"
	"time"

	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/roster"
	"redlock-proxy/redlock/stream"
)

// A masterDB is one database of a master: its stream, and what is known of how it
// stands. Its exported methods are what the stream asks of its owner.
type masterDB struct {
	*stream.Stream
	master *master
	db     int

	checked   checked      // the stream's reader's own, and Up's
	hung      atomic.Bool  // the roster was told that it does not answer
	checkedAt atomic.Int64 // when the marker that was read last was asked for, in ns since 1970
}

func newMasterDB(m *master, db int) *masterDB {
	s := &masterDB{master: m, db: db}
	s.Stream = stream.New(stream.Options{
		Owner: s, DB: db, Embedded: m.embedded(), Log: m.log,
		Marker: markerQuestion, Pause: roster.BeatPause,
		Raise: func(dst []byte, longest time.Duration) []byte {
			return raiseScript.append(dst, [][]byte{[]byte(roster.MarkerKey)}, resp.Decimal(int64(db)), resp.Decimal(longest.Milliseconds()))
		},
	})
	return s
}

func (s *masterDB) place() roster.Place { return roster.Place{Master: s.master.number, DB: s.db} }

func (s *masterDB) Name() string { return s.master.name() }

func (s *masterDB) Timeout() time.Duration { return s.master.timeout() }

func (s *masterDB) MaxReply() int64 { return s.master.settings().MaxReply }

func (s *masterDB) Suspended() time.Duration { return s.master.slumber.last() }

func (s *masterDB) Server() stream.Server { return s.master.Server() }

// Up hears what a server says of itself on a new connection.
func (s *masterDB) Up(self stream.Greeting, now time.Time) {
	m, p := s.master, s.place()
	s.checked = checked{}
	if ask(m.voters, func(r *roster.Roster) bool {
		return r.Connected(p, self.RunID, self.Problem, readReplication(self.Info), now)
	}) {
		m.clock.forget() // another process may run on another machine
	}
	if s.db == 0 {
		m.evictionAsked.Store(0)
	}
	if m.embedded() {
		m.tell(s.db, roster.Standing{State: roster.Certified}, now)
	}
	m.log.Debug("connected to lock master", "master", m.name(), "db", s.db)
	m.tellQueued()
}

// Down hears why the master cannot be asked.
func (s *masterDB) Down(why error) {
	m, reason := s.master, absence(why)
	if ask(m.voters, func(r *roster.Roster) bool { return r.Disconnected(s.place(), reason, time.Now()) }) {
		m.log.Debug("lock master is away; acquires do without it, releases wait for it", "master", m.name(), "db", s.db, "reason", reason)
	}
}

// Queued hears how many more debts wait.
func (s *masterDB) Queued(more int64) {
	s.master.queued.Add(more)
	s.master.tellQueued()
}

package master

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/roster"
	"redlock-proxy/redlock/stream"
)

// Master is one of the N independent servers, with one stream for each database in use
// and a watch on its clock. All goroutines may use it.
type Master struct {
	*shared
	server atomic.Pointer[Server] // a reload may change it
	number int                    // its index in the configuration
	clock  clockWatch

	queuedTold int // the number of queued debts in the last call of the Observer; only certify uses it

	evictionAsked atomic.Int64 // when it was last asked for its eviction policy, in ns since 1970

	refused atomic.Int64 // when a refusal was last logged, in ns since 1970

	unasked time.Time // since when it must not be asked any more; guarded by Set.changing

	mu        sync.Mutex
	databases map[int]*database
	ctx       context.Context // ends its streams
	end       context.CancelFunc
	running   sync.WaitGroup
}

// Name is the server's name in the configuration.
func (m *Master) Name() string { return m.server.Load().Name }

// Embedded tells whether the server runs in this process.
func (m *Master) Embedded() bool { return m.server.Load().Embedded }

// Server returns how to reach the server now.
func (m *Master) Server() stream.Server { return m.server.Load().address() }

// Stream returns the stream of a database. The first use opens it.
func (m *Master) Stream(db int) *stream.Stream { return m.database(db).Stream }

// begin makes the Master the given server, with no streams yet.
func (m *Master) begin(server Server) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.server.Store(&server)
	m.databases = map[int]*database{}
	m.ctx, m.end = context.WithCancel(m.shared.ctx)
}

// leave ends all streams and waits for them. Until begin, new streams refuse all calls.
func (m *Master) leave() {
	m.mu.Lock()
	end := m.end
	m.mu.Unlock()
	end()
	m.loop.Join(&m.running)
}

// hasLeft tells whether its streams have ended, so that nothing is asked.
func (m *Master) hasLeft() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ctx.Err() != nil
}

// database returns a database of the master. The first use opens its stream.
func (m *Master) database(db int) *database {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.databases[db]
	if s == nil {
		s = newDatabase(m, db)
		m.databases[db] = s
		if m.ctx.Err() != nil {
			s.Run(m.ctx) // it only closes the stream
			return s
		}
		m.loop.Spawn(&m.running, func() { s.Run(m.ctx) })
	}
	return s
}

// all returns the databases in use.
func (m *Master) all() []*database {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.databases))
}

// Databases returns the numbers of the databases in use.
func (m *Master) Databases() []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.databases))
}

// idle tells whether no call is unanswered on a connected stream and all askers have
// returned.
func (m *Master) idle() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.databases {
		if !s.Idle() {
			return false
		}
	}
	return true
}

// beat has those streams checked that were idle for a while, or all of them.
func (m *Master) beat(now time.Time, all bool) {
	for _, s := range m.all() {
		s.Beat(now, all)
	}
}

// listen tells the roster which streams do not answer, at each beat. late says that the beat itself came late.
func (m *Master) listen(now time.Time, late bool) {
	for _, s := range m.all() {
		if s.silence.lasts(s.Silent(now), late, now) && !m.Embedded() && !s.hung.Swap(true) {
			m.tell(s.db, roster.Standing{State: roster.Unreachable, Reason: roster.Silent}, now)
		}
	}
}

// A silence begins with the first beat that finds questions unanswered. This is only about what people are told: each
// ballot decides for itself what counts as a vote.
type silence struct{ since time.Time }

// lasts tells whether it has lasted for a whole beat. A process that stood still finds all masters silent until it has
// read their answers. So after a late beat the time starts anew.
func (s *silence) lasts(unanswered, late bool, now time.Time) bool {
	switch {
	case !unanswered:
		s.since = time.Time{}
		return false
	case late || s.since.IsZero():
		s.since = now
	}
	return now.Sub(s.since) >= roster.BeatLength
}

// tell tells the roster the state of a place.
func (m *Master) tell(db int, st roster.Standing, now time.Time) {
	m.voters.step(roster.Noted{Place: roster.Place{Master: m.number, DB: db}, Standing: st}, now)
}

// queued returns the number of debts that wait on its streams.
func (m *Master) queued() (n int) {
	for _, s := range m.all() {
		n += s.Queued()
	}
	return n
}

// tellQueued tells the Observer the number of waiting debts if it has changed.
func (m *Master) tellQueued() {
	if n := m.queued(); n != m.queuedTold {
		m.queuedTold = n
		m.observer.Queued(m.Name(), n)
	}
}

// refusalPause is the shortest time between two log lines about refusals of one master.
const refusalPause = time.Minute

// LogRefusal logs that the master's user lacks the right to a client's command. To clients such a
// master just does not vote. It does nothing if no reply says so.
func (m *Master) LogRefusal(replies [][]byte) {
	if i := slices.IndexFunc(replies, resp.IsForbidden); i >= 0 {
		m.logRefusal("a lock master refuses a client's command, so it does not vote on it; grant the command to the proxy's user", resp.ErrorText(replies[i]))
	}
}

func (m *Master) logRefusal(text, why string) {
	now, last := time.Now().UnixNano(), m.refused.Load()
	if now-last >= int64(refusalPause) && m.refused.CompareAndSwap(last, now) {
		m.log.Error(text, "master", m.Name(), "error", why)
	}
}

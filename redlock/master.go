package redlock

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/roster"
	"redlock-proxy/redlock/stream"
)

// master is one of the N independent servers: its streams, one for each
// database in use, and how long it may take to answer.
type master struct {
	server   atomic.Pointer[Master] // a reload may change it
	number   int                    // its place in the configuration, counted from 0
	settings func() *Config
	voters   *voters
	clock    clockWatch
	slumber  *slumber
	log      *slog.Logger
	observer Observer

	queued     atomic.Int64 // how many debts wait on its streams
	queuedTold atomic.Int64 // as the Observer was told last

	evictionAsked atomic.Int64 // when it was asked last how it evicts, in ns since 1970

	forbidden atomic.Int64 // when it was told that a right is missing, in ns since 1970

	mu      sync.Mutex
	streams map[int]*masterDB
	ctx     context.Context // ends all streams
	end     context.CancelFunc
	running sync.WaitGroup
}

func (m *master) name() string { return m.server.Load().Name }

func (m *master) embedded() bool { return m.server.Load().Embedded }

// Name, Embedded and Server are what those ask who listen to it.
func (m *master) Name() string { return m.name() }

func (m *master) Embedded() bool { return m.embedded() }

func (m *master) Server() stream.Server { return m.server.Load().address() }

// begin makes it the given server, with no streams yet. ctx ends them.
func (m *master) begin(ctx context.Context, server Master) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.server.Store(&server)
	m.streams = map[int]*masterDB{}
	m.ctx, m.end = context.WithCancel(ctx)
}

// leave ends all streams. What is asked until begin is not asked of anybody.
func (m *master) leave() {
	m.mu.Lock()
	end := m.end
	m.mu.Unlock()
	end()
	m.running.Wait()
}

// timeout is how long a ballot waits for this master's vote.
func (m *master) timeout() time.Duration { return m.settings().MasterTimeout }

// stream returns the stream for a database, opening it at its first use.
func (m *master) stream(db int) *masterDB {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.streams[db]
	if s == nil {
		s = newMasterDB(m, db)
		m.streams[db] = s
		if m.ctx.Err() != nil {
			s.Close()
			return s
		}
		m.running.Go(func() { s.Run(m.ctx) })
	}
	return s
}

// all are its streams.
func (m *master) all() []*masterDB {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.streams))
}

// idle tells that nothing is unanswered on a connected stream, and that whoever
// asked has done what the answers call for.
func (m *master) idle() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.streams {
		if !s.Idle() {
			return false
		}
	}
	return true
}

// beat has the streams checked that have not been for a while, or all of them,
// and tells the roster of those that are not answered. late is that the beat is.
func (m *master) beat(now time.Time, all, late bool) {
	if m.embedded() {
		return
	}
	for _, s := range m.all() {
		p := roster.Place{Master: m.number, DB: s.db}
		unanswered := s.Beat(now, all)
		if ask(m.voters, func(r *roster.Roster) bool { return r.Silent(p, unanswered, late, now) }) && !s.hung.Swap(true) {
			m.tell(s.db, roster.Standing{State: roster.Away, Reason: roster.Silent}, now)
		}
	}
}

// tell has the roster note how a place stands.
func (m *master) tell(db int, st roster.Standing, now time.Time) {
	m.voters.do(func(r *roster.Roster) { r.Noted(roster.Place{Master: m.number, DB: db}, st, now) })
}

// tellQueued tells the Observer how many debts wait, and tells it again where that
// has changed meanwhile: of two who tell at once one may be late.
func (m *master) tellQueued() {
	for told := false; !told; told = m.queued.Load() == m.queuedTold.Load() {
		n := m.queued.Load()
		m.queuedTold.Store(n)
		m.observer.Queued(m.name(), int(n))
	}
}

// forbiddenPause is how long it is not told again that a master refuses.
const forbiddenPause = time.Minute

// tellForbidden logs that the proxy's user lacks a right on the master. To
// clients that is a master which does not vote, whatever the reason.
func (m *master) tellForbidden(replies [][]byte) {
	i := slices.IndexFunc(replies, resp.IsForbidden)
	if i < 0 {
		return
	}
	now, last := time.Now().UnixNano(), m.forbidden.Load()
	if now-last < int64(forbiddenPause) || !m.forbidden.CompareAndSwap(last, now) {
		return
	}
	m.log.Error("a lock master refuses what a client asked, so it does not vote on it; grant its right to the proxy's user",
		"master", m.name(), "error", resp.ErrorText(replies[i]))
}

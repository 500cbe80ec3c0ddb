package redlock

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"time"
)

// master is one of the N independent servers: its streams, one for each
// database in use, and how long it may take to answer.
type master struct {
	Master
	name     string
	timeout  time.Duration
	log      *slog.Logger
	observer Observer

	mu      sync.Mutex
	streams map[int]*stream
	ctx     context.Context // ends all streams
	running sync.WaitGroup
}

func newMaster(ctx context.Context, m Master, cfg *Config) *master {
	return &master{
		Master:   m,
		name:     m.Name,
		timeout:  cfg.MasterTimeout,
		log:      cfg.Log,
		observer: cfg.Observer,
		streams:  map[int]*stream{},
		ctx:      ctx,
	}
}

func (m *master) dial(ctx context.Context) (net.Conn, error) { return m.Dial(ctx) }

// stall is how long a connection may stay silent with questions on it before
// it is given up and dialled anew.
func (m *master) stall() time.Duration { return max(2*time.Second, 20*m.timeout) }

// stream returns the stream for a database, opening it at its first use.
func (m *master) stream(db int) *stream {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.streams[db]
	if s == nil {
		s = &stream{
			master: m,
			db:     db,
			owed:   map[string]int{},
			loaded: map[string]bool{},
			wake:   make(chan struct{}, 1),
		}
		m.streams[db] = s
		m.running.Go(func() { s.run(m.ctx) })
	}
	return s
}

// reachable tells whether the master answers, as far as its stream for
// database 0 knows.
func (m *master) reachable(now time.Time) bool {
	s := m.stream(0)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state == up && !s.suspended(now)
}

// idle tells that nothing is unanswered on a connected stream.
func (m *master) idle() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.streams {
		s.mu.Lock()
		busy := s.state == up && s.head < len(s.calls)
		s.mu.Unlock()
		if busy {
			return false
		}
	}
	return true
}

func (m *master) connected(db int) {
	m.log.Info("connected to lock master", "master", m.name, "db", db)
}

func (m *master) disconnected(db int, why error) {
	m.log.Warn("lock master is away; acquires do without it, releases wait for it", "master", m.name, "db", db, "error", why)
}

package roster

import (
	"fmt"
	"strings"
	"time"

	"redlock-proxy/redlock/marker"
)

// A toyServer is a Redis server as a roster sees it: a process that can forget, with a clock and
// one marker in each database.
type toyServer struct {
	place int
	name  string
	up    bool
	runs  int
	run   string
	ahead time.Duration // how far its clock is ahead of the world's
	texts []string      // the marker, by database
	// memory is, by database, the number of the present memory. It changes when the database may
	// have forgotten a lock.
	memory  []int
	forgot  []time.Duration // when the present memory began, by database
	repl    Replication
	problem string   // why it is no master at all
	saved   []string // the markers of the last snapshot
	// back is when its clock was set back. A process that looks only after the clock has gone
	// forward again cannot notice.
	back time.Duration
	// jumped is the process that saw a jump of its clock that is not yet written down.
	jumped *process
}

// newToy is a server with so many databases, in its first run.
func newToy(place int, name string, dbs int) *toyServer {
	s := &toyServer{place: place, name: name, texts: make([]string, dbs), memory: make([]int, dbs), forgot: make([]time.Duration, dbs), saved: make([]string, dbs)}
	s.start()
	return s
}

func (s *toyServer) String() string { return s.name + "/" + s.run }

// own is its marker in database 0. It is empty if there is none that can be read.
func (s *toyServer) own() marker.Marker {
	m, _ := marker.Parse(s.texts[0])
	return m
}

// remembers tells whether it has the marker of its present run.
func (s *toyServer) remembers() bool { return s.up && s.own().Run == s.run }

// start begins another run of its process.
func (s *toyServer) start() {
	s.runs++
	s.run = fmt.Sprintf("%s-run%d", s.name, s.runs)
	s.up, s.jumped = true, nil
}

// clock returns its own time.
func (s *toyServer) clock(w *world) time.Duration {
	return time.Duration(worldBegan.UnixNano()) + w.now + s.ahead
}

// forget replaces its memory of a database.
func (s *toyServer) forget(w *world, db int) {
	w.memories++
	s.memory[db], s.forgot[db] = w.memories, w.now
	w.forgets()
}

func (s *toyServer) forgetAll(w *world) {
	for db := range s.memory {
		s.forget(w, db)
	}
}

// write does what the scripts do that write markers.
func (s *toyServer) write(w *world, m Write, latest time.Duration) bool {
	clock := s.clock(w)
	ms := clock.Milliseconds()
	if text, _ := marker.CutToken(s.texts[m.DB]); text != m.Seen {
		return false
	}
	if m.Kind == EditAll {
		for db, text := range s.texts {
			own, ok := marker.Parse(text)
			if !ok || own.Set != m.Marker.Set {
				continue
			}
			own.Epoch, own.Joined, own.ReplID = m.Marker.Epoch, m.Marker.Joined, m.Marker.ReplID
			own.Members = m.Marker.Members
			if db == 0 {
				own.Token = max(own.Token, m.Marker.Token)
			}
			if m.Turn {
				own.Longest, own.Before, own.Turned = 0, own.Longest, ms
			}
			s.texts[db] = own.String()
		}
		return true
	}
	if clock > latest {
		return false
	}
	written := m.Marker
	if written.Since == marker.SinceNow {
		written.Since = ms
	}
	if written.Turned == marker.TurnNow {
		written.Turned = ms
	}
	w.begins(written.Set, written.Members)
	remembers := func(own marker.Marker) bool { return own.Set == written.Set && own.Run == written.Run }
	overwrites := func(db int, own marker.Marker) bool {
		return db == m.DB || m.Kind == WriteAll || m.Kind == WriteLacking && !remembers(own)
	}
	for db, text := range s.texts {
		own, _ := marker.Parse(text)
		switch {
		case m.DB != 0 || own.Set != written.Set:
			continue
		case overwrites(db, own):
			written.Before = max(written.Before, own.Longest)
		default:
			written.Longest = max(written.Longest, own.Longest)
		}
		written.Before = max(written.Before, own.Before)
	}
	for db, text := range s.texts {
		own, _ := marker.Parse(text)
		switch {
		case overwrites(db, own):
			written.DB, written.Token = db, 0
			if db == 0 {
				written.Token = max(m.Marker.Token, own.Token)
			}
			s.texts[db] = written.String()
		case remembers(own) && own.DB != db:
			own.DB = marker.Nowhere
			s.texts[db] = own.String()
		}
	}
	s.jumped = nil
	return true
}

// swap exchanges two databases with all that is in them.
func (s *toyServer) swap(one, other int) {
	s.texts[one], s.texts[other] = s.texts[other], s.texts[one]
	s.memory[one], s.memory[other] = s.memory[other], s.memory[one]
}

// raise records a longer TTL, in database 0 and here.
func (s *toyServer) raise(db int, ttl time.Duration) {
	for _, at := range []int{0, db} {
		m, ok := marker.Parse(s.texts[at])
		if !ok || m.DB != at {
			return
		}
		m.Longest = max(m.Longest, ttl)
		s.texts[at] = m.String()
	}
}

// promote makes a replica of it a master: another process, with its data of a while ago.
func (s *toyServer) promote(w *world, name string) *toyServer {
	n := newToy(s.place, name, len(s.texts))
	n.ahead = s.ahead
	copy(n.texts, s.saved)
	copy(n.saved, s.saved)
	n.forgetAll(w)
	n.repl = Replication{ID: strings.ReplaceAll(name, " ", ""), Was: true}
	return n
}

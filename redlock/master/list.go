package master

import (
	"context"
	"errors"
	"net"
	"slices"
	"time"

	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/roster"
)

// A List is the masters at one moment, in the order of their numbers. It never changes. A
// ballot takes it once, so all its decisions use one number of masters.
type List struct {
	// masters are all that this process has ever known, so an index stays valid. Those that it
	// does not connect to have only closed streams.
	masters []*Master
	size    int // as many of them count
	listed  int // as many of them are in the configuration
}

// At returns the master with an index. Beyond Size it is one that does not count yet or any
// more.
func (l *List) At(i int) *Master { return l.masters[i] }

// Size returns the number of masters of which a quorum is needed, whether they may vote or
// not. It is the number on record and not that of the configuration.
func (l *List) Size() int { return l.size }

// All returns all masters that count, whether they may vote or not.
func (l *List) All() quorum.Set { return 1<<l.Size() - 1 }

// Needed returns the quorum.
func (l *List) Needed() int { return quorum.Size(l.Size()) }

// Serving returns the masters that are asked at all now.
func (l *List) Serving(db int) (served quorum.Set) {
	now := time.Now()
	for i := range l.Size() {
		if l.At(i).database(db).Serves(now) {
			served |= 1 << i
		}
	}
	return served
}

// servers returns the servers of the configuration.
func (l *List) servers() (list []Server) {
	for _, m := range l.masters[:l.listed] {
		list = append(list, *m.server.Load())
	}
	return list
}

var errUnlisted = errors.New(roster.Unlisted)

// isOffRecord says that the configuration has a master that is not on record.
const isOffRecord = "it is in the list of this proxy and not one of the masters on record: reload this proxy with the present list of masters"

// recounted takes over the number of masters on record. The caller holds the roster.
func (s *Set) recounted(r *roster.Roster, size int) {
	list := s.List()
	if size == list.size {
		return
	}
	known := slices.Clone(list.masters)
	for i := len(known); i < size; i++ {
		known = append(known, s.absentee(i, r.Status(time.Now()).Masters[i].Name))
	}
	s.list.Store(&List{known, size, list.listed})
}

// absentee makes a master that this process does not connect to.
func (s *Set) absentee(i int, name string) *Master {
	m := &Master{shared: s.shared, number: i}
	m.begin(Server{Name: name, Dial: func(context.Context) (net.Conn, error) { return nil, errUnlisted }})
	m.end()
	return m
}

// tend connects to masters that this process must ask, and leaves those that it must not ask any
// more. It does nothing while a Reload is under way.
func (s *Set) tend(now time.Time) {
	if !s.changing.TryLock() {
		return
	}
	defer s.changing.Unlock()
	s.tendAll(now)
}

func (s *Set) tendAll(now time.Time) {
	list := s.List()
	for i, m := range list.masters {
		switch asks := ask(s.voters, func(r *roster.Roster) bool { return r.Asks(i) }); {
		case asks && m.hasLeft() && i < list.listed:
			m.begin(*m.server.Load())
			s.open(m)
		case asks || m.hasLeft():
			m.unasked = time.Time{}
		case m.isPaid(now):
			m.leave()
			s.log.Info("this server is no lock master any more, and its connections are closed", "master", m.Name())
		}
	}
	if f := s.resized.Load(); f != nil && s.told != list {
		s.told = list
		(*f)()
	}
}

// open opens the streams of all databases in use.
func (s *Set) open(m *Master) {
	for _, other := range s.List().masters {
		for _, db := range other.Databases() {
			m.database(db)
		}
	}
}

// isPaid tells whether a removed master has received all queued debts, or had time enough for them.
func (m *Master) isPaid(now time.Time) bool {
	if m.unasked.IsZero() {
		m.unasked = now
	}
	return m.queued() == 0 && m.idle() || now.Sub(m.unasked) >= m.limits.Load().MaxQuarantine
}

// OnResize has f called after the list of masters has changed, by the Set's goroutine or by that
// of a Reload.
func (s *Set) OnResize(f func()) { s.resized.Store(&f) }

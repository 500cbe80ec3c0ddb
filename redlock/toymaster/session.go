package toymaster

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// A Session is the master's end of a connection.
type Session struct {
	Master  *Master
	conn    *Conn
	ID      int64
	killed  bool
	db      int
	resp3   bool
	queued  [][][]byte // since MULTI; nil outside
	dirty   bool       // a command was refused when it was queued
	watched map[string]Entry
	mute    bool // an answer was lost

	listens listens

	unread []byte // of a command that is not complete yet
}

// look executes what has arrived.
func (s *Session) look() {
	var block [4096]byte
	for {
		n, err := s.conn.out.takeAll(block[:])
		if n == 0 && err == nil {
			return
		}
		if !s.heard(block[:n], err) {
			s.conn.out.tell(nil)
			return
		}
	}
}

// heard executes what was read. It returns false if the session is over.
func (s *Session) heard(b []byte, err error) bool {
	s.unread = append(s.unread, b...)
	var replies []byte
	for {
		args, size := ParseFrame(s.unread)
		if size == 0 {
			break
		}
		s.unread = s.unread[size:]
		reply, alive := s.Master.execute(s, args)
		if !alive {
			return false
		}
		replies = append(replies, reply...)
	}
	if len(replies) > 0 && !s.answer(replies) {
		return false
	}
	if err != nil {
		s.conn.in.end(s.conn.Link.arrival(toProxy, time.Now()))
		s.Master.forget(s)
	}
	return err == nil
}

// answer sends replies, unless the link's fate prevents it.
func (s *Session) answer(replies []byte) bool {
	link := s.conn.Link
	if s.mute {
		return true // nothing arrives after a lost answer
	}
	if f, doomed := link.takeFate(answerLost); doomed {
		s.mute = true
		link.world.After(f.after, link.Cut)
		return true
	}
	s.conn.in.write(replies, link.arrival(toProxy, time.Now()))
	return true
}

func (m *Master) forget(s *Session) {
	if i := slices.Index(m.sessions, s); i >= 0 {
		m.sessions = slices.Delete(m.sessions, i, i+1)
	}
}

// ParseFrame reads the first command, whose arguments are parts of b. size is 0 if it is not complete yet.
func ParseFrame(b []byte) (args [][]byte, size int) {
	line := func() (int, bool) {
		for i := size; i+1 < len(b); i++ {
			if b[i] == '\r' && b[i+1] == '\n' {
				n, err := strconv.Atoi(string(b[size+1 : i]))
				if err != nil {
					panic(fmt.Sprintf("the toy master was sent no command: %q", b))
				}
				size = i + 2
				return n, true
			}
		}
		return 0, false
	}
	count, ok := line()
	if !ok {
		return nil, 0
	}
	args = make([][]byte, 0, count)
	for range count {
		n, ok := line()
		if !ok || len(b) < size+n+2 {
			return nil, 0
		}
		args = append(args, b[size:size+n:size+n])
		size += n + 2
	}
	return args, size
}

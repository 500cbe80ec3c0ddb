package redlock

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"redlock-proxy/redlock/resp"
)

// A fakeSession is the master's end of a connection.
type fakeSession struct {
	master  *fakeMaster
	conn    *fakeConn
	id      int64
	killed  bool
	db      int
	resp3   bool
	queued  [][][]byte // since MULTI; nil outside
	dirty   bool       // a command was refused when it was queued
	watched map[string]entry
	mute    bool // an answer was lost
	probed  int  // the commands of a probe that came last, without another one behind them

	listens fakeListens

	unread []byte // of a command that is not complete yet
}

// look executes what has arrived.
func (s *fakeSession) look() {
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
func (s *fakeSession) heard(b []byte, err error) bool {
	s.unread = append(s.unread, b...)
	var replies []byte
	for {
		args, size := parseFrame(s.unread)
		if size == 0 {
			break
		}
		s.unread = s.unread[size:]
		reply, alive := s.master.execute(s, args)
		if !alive {
			return false
		}
		replies = append(replies, reply...)
	}
	if len(replies) > 0 && !s.answer(replies) {
		return false
	}
	if err != nil {
		s.conn.in.end(s.conn.link.arrival(toProxy, time.Now()))
		s.master.forget(s)
	}
	return err == nil
}

// answer sends replies, unless the link's fate prevents it.
func (s *fakeSession) answer(replies []byte) bool {
	link := s.conn.link
	if s.mute {
		return true // nothing arrives after a lost answer
	}
	if f, doomed := link.takeFate(answerLost); doomed {
		s.mute = true
		link.world.After(f.after, link.cut)
		return true
	}
	s.conn.in.write(replies, link.arrival(toProxy, time.Now()))
	if _, doomed := link.takeFate(answerWritten); doomed {
		s.conn.in.end(link.arrival(toProxy, time.Now()))
		s.master.forget(s)
		return false
	}
	return true
}

func (m *fakeMaster) forget(s *fakeSession) {
	if i := slices.Index(m.sessions, s); i >= 0 {
		m.sessions = slices.Delete(m.sessions, i, i+1)
	}
}

// parseFrame reads the first command, whose arguments are parts of b. size is 0 if it is not complete yet.
func parseFrame(b []byte) (args [][]byte, size int) {
	line := func() (int, bool) {
		for i := size; i+1 < len(b); i++ {
			if b[i] == '\r' && b[i+1] == '\n' {
				n, err := strconv.Atoi(string(b[size+1 : i]))
				if err != nil {
					panic(fmt.Sprintf("the fake master was sent no command: %q", b))
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

func TestFakeMasterParsesFramesAtEveryCut(t *testing.T) {
	frame := resp.AppendCommand(nil, "SET", "k", "", "two\r\nlines")
	for cut := range frame {
		if _, size := parseFrame(frame[:cut]); size != 0 {
			t.Errorf("cut at %d: a command of %d bytes was found", cut, size)
		}
	}
	args, size := parseFrame(append(frame, "*1"...))
	if size != len(frame) || len(args) != 4 || string(args[3]) != "two\r\nlines" {
		t.Errorf("%q, %d bytes", args, size)
	}
}

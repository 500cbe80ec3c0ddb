package redlock

import "testing"

// What a pop got from too few masters is there again, exactly as it was.
func TestElementsThatTooFewMastersHaveArePutBack(t *testing.T) {
	for _, row := range []struct {
		push, pop []string
		reply     string
	}{
		{[]string{"RPUSH", "signals", "1"}, []string{"BLPOP", "signals", "0"}, "*-1\r\n"},
		{[]string{"RPUSH", "signals", "1", "2"}, []string{"BRPOP", "signals", "0"}, "*-1\r\n"},
		{[]string{"ZADD", "signals", "7", "me"}, []string{"ZPOPMIN", "signals"}, "*0\r\n"},
	} {
		t.Run(row.pop[0], func(t *testing.T) {
			s := startLiveSet(t, 3)
			s.masters[0].must(row.push...)
			was := s.masters[0].conn.look("signals")
			wantReply(t, s.run([]string{"signals"}, row.pop...), row.reply)
			s.eventually("as it was", func(m *liveMaster) bool {
				return m != s.masters[0] || s.idle() && sameImage(m.conn.look("signals"), was)
			})
			// A push on its way has reached the others, and nothing is lost.
			for _, m := range s.masters[1:] {
				m.must(row.push...)
			}
			if o := s.run([]string{"signals"}, row.pop...); o.Verdict != Won || string(o.Reply) == row.reply {
				t.Errorf("%v %q", o.Verdict, o.Reply)
			}
		})
	}
}

// An element that expires is put back until then.
func TestElementsThatExpireArePutBackUntilThen(t *testing.T) {
	m := startLiveMaster(t)
	m.must("RPUSH", "k", "1")
	m.must("PEXPIRE", "k", "100000")
	before := m.conn.look("k")
	m.must("LPOP", "k")
	after := m.conn.look("k")
	if got := string(m.conn.ask(appendUndo(nil, []byte("k"), before, after), 1)[0]); got != undone {
		t.Errorf("answered %q", got)
	}
	if now := m.conn.look("k"); !sameImage(now, before) {
		t.Errorf("%+v became %+v", before, now)
	}
}

// What somebody pushed meanwhile is not replaced.
func TestElementsAreNotPutBackOverOthers(t *testing.T) {
	m := startLiveMaster(t)
	m.must("RPUSH", "k", "old")
	before := m.conn.look("k")
	m.must("LPOP", "k")
	after := m.conn.look("k")
	m.must("RPUSH", "k", "new")
	others := m.conn.look("k")
	if got := string(m.conn.ask(appendUndo(nil, []byte("k"), before, after), 1)[0]); got != leftAlone {
		t.Errorf("answered %q", got)
	}
	if now := m.conn.look("k"); !sameImage(now, others) {
		t.Errorf("%+v became %+v", others, now)
	}
}

// A waiter whom stray elements wake again and again scraps them.
func TestElementsThatTooFewMastersHaveAreScrapped(t *testing.T) {
	s := startLiveSet(t, 3)
	s.masters[0].must("RPUSH", "one", "1")
	s.masters[0].must("RPUSH", "two", "1", "2")
	for _, key := range []string{"one", "two", "two"} {
		o := s.Run(t.Context(), RunRequest{Keys: bytesOf([]string{key}), Args: bytesOf([]string{"LPOP", key}), Scrap: true})
		wantReply(t, o, "$-1\r\n")
	}
	for _, key := range []string{"one", "two"} {
		s.eventuallyGone(key)
	}
}

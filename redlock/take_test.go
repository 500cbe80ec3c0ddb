package redlock

import (
	"testing"
)

// If too few masters give a pop an element, the element is put back exactly as it was.
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
				return m != s.masters[0] || s.Locker.masters.Idle() && sameImage(m.conn.look("signals"), was)
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

// A waiter that stray elements wake again and again deletes them.
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

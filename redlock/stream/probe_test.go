package stream

import (
	"log/slog"
	"testing"
	"time"
)

// A probedOwner keeps what it is told of probes.
type probedOwner struct {
	patientOwner
	told *[]string
}

func (o probedOwner) Refuses(refusal []byte) { *o.told = append(*o.told, string(refusal)) }

// The Owner hears of each probe what the master refuses. If the master could not give a lock back, it
// is not asked for one until a probe succeeds. A master that is full refuses a lock itself.
func TestWhatAProbeTells(t *testing.T) {
	var told []string
	s := New(Options{Owner: probedOwner{told: &told}, Log: slog.New(slog.DiscardHandler)})
	s.state = up
	fine := []string{"$-1\r\n", "+OK\r\n", "+OK\r\n", "+OK\r\n", "*0\r\n", ":0\r\n"}
	for _, probe := range []struct {
		at    int // the answer that is another one
		says  string
		asked bool
	}{
		{0, "-NOPERM you may not\r\n", false}, {0, "-OOM no memory\r\n", true}, {0, "-NOREPLICAS none\r\n", true},
		{5, "-ERR The user executing the script can't run this command\r\n", false}, {2, "-ERR unknown command\r\n", false}, {0, fine[0], true},
	} {
		told, s.probing = nil, true
		var replies [][]byte
		for i, reply := range fine {
			if i == probe.at {
				reply = probe.says
			}
			replies = append(replies, []byte(reply))
		}
		want := probe.says
		if want == fine[0] {
			want = ""
		}
		s.heardProbe(replies, Judgement{}, nil)
		if asked := s.mayCreate(time.Now()); asked != probe.asked || s.probing || len(told) != 1 || told[0] != want {
			t.Errorf("after %q it is asked for locks: %v, the Owner was told %q, and another probe waits: %v", probe.says, asked, told, s.probing)
		}
	}
}

// A master is probed whether it is idle or busy, once in Options.Pause, and not while a probe is
// unanswered. The next connection begins with a probe.
func TestWhenAMasterIsProbed(t *testing.T) {
	const pause = time.Second
	s := New(Options{Owner: patientOwner{}, Log: slog.New(slog.DiscardHandler), Marker: "marker", Pause: pause})
	begin := func(now time.Time) { s.takeOver(nil, Greeting{}, now) }
	start := time.Now()
	begin(start)
	for _, step := range []struct {
		after  time.Duration
		before func()
		probes int
	}{
		{0, nil, 1},
		{2 * pause, nil, 1}, // the first is unanswered
		{2 * pause, func() { s.probing = false }, 2},
		{2*pause + pause/2, func() { s.probing = false }, 2},
		{3 * pause, nil, 3},
		{3 * pause, func() { s.endConnection(); begin(start.Add(3 * pause)) }, 1},
	} {
		if step.before != nil {
			step.before()
		}
		now := start.Add(step.after)
		for i := range s.calls {
			s.calls[i].sent = now // or the connection is given up
		}
		s.Beat(now, false)
		probes := 0
		for _, c := range s.calls {
			if c.Replies == probeReplies {
				probes++
			}
		}
		if probes != step.probes {
			t.Errorf("%v: %d probes were sent, want %d", step.after, probes, step.probes)
		}
	}
	s = New(Options{Owner: patientOwner{}, Embedded: true, Pause: pause})
	s.takeOver(nil, Greeting{}, start)
	if s.Beat(start, false); len(s.calls) > 0 {
		t.Error("an embedded server was probed")
	}
}

package master

import (
	"testing"
	"time"

	"redlock-proxy/redlock/roster"
)

// The middle of the bounds is shown, with their distance from it. Further readings narrow
// them.
func TestHowFarAClockIsAhead(t *testing.T) {
	const drift, ms = 0.01, time.Millisecond
	began := time.Now()
	c, s := new(clockWatch), newSlumber(func() time.Duration { return 0 })
	if by, within := c.ahead(moment{at: began}); by != 0 || within != 0 {
		t.Errorf("a clock that was not read is ahead by %s, within %s", by, within)
	}
	// read takes a reading that was asked for at from and answered at to, in ms. The server's
	// clock was 250 ms ahead and read in the middle.
	read := func(from, to time.Duration) {
		server := time.Duration(began.Add((from + to) / 2 * ms).Add(250 * ms).UnixNano())
		c.observe(moment{at: began.Add(from * ms)}, began.Add(to*ms), server, drift, s)
	}
	read(0, 20)
	if by, within := c.ahead(moment{at: began.Add(time.Second)}); by != 250*ms || within != 10*ms {
		t.Errorf("it is ahead by %s, within %s", by, within)
	}
	read(100, 102)
	if by, within := c.ahead(moment{at: began.Add(time.Second)}); by != 250*ms || within != 1*ms {
		t.Errorf("after another reading it is ahead by %s, within %s", by, within)
	}
}

// A clock that goes as fast or slow as the drift allows has not jumped, however long that lasts. One
// that is set has, forward or back.
func TestADriftIsNoJump(t *testing.T) {
	const drift, pause = 0.01, 10 * time.Second
	for _, row := range []struct{ rate, set time.Duration }{ // the gain of 10 s, and a step at the end
		{0, 0}, {90 * time.Millisecond, 0}, {-90 * time.Millisecond, 0},
		{0, 2 * time.Second}, {0, -2 * time.Second},
	} {
		began := time.Now()
		c, s := new(clockWatch), newSlumber(func() time.Duration { return 0 })
		read := func(n int, set time.Duration) roster.Jump {
			at := time.Duration(n) * pause
			server := time.Duration(began.Add(at + time.Duration(n)*row.rate + set).UnixNano())
			by, _ := c.observe(moment{at: began.Add(at)}, began.Add(at+time.Millisecond), server, drift, s)
			return by
		}
		for n := range 6 {
			if by := read(n, 0); by != (roster.Jump{}) {
				t.Errorf("%v in 10 s: after %d readings it has jumped by %+v", row.rate, n, by)
			}
		}
		by := read(6, row.set)
		if by.Forward() != (row.set > 0) || by.Backward() != (row.set < 0) {
			t.Errorf("set by %v: it has jumped by %+v", row.set, by)
		}
	}
}

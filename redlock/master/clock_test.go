package master

import (
	"testing"
	"time"
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

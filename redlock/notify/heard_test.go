package notify

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/quorum"
)

// A hearing feeds copies of one message to heard, with a clock of its own.
type hearing struct {
	*heard
	t    *testing.T
	now  time.Time
	told []string // times since the beginning
}

func newHearing(t *testing.T, masters int) *hearing {
	x := &hearing{t: t, now: time.Unix(1000, 0)}
	x.heard = newHeard(masters, func(m message) {
		word := x.now.Sub(time.Unix(1000, 0)).String()
		if m.payload != "m" {
			word = m.payload + "@" + word
		}
		x.told = append(x.told, word)
	})
	x.times = copyTimes{grace: 50 * time.Millisecond, memory: 8 * time.Second}
	return x
}

// at lets time pass until ms after the beginning, and lets due messages be reported.
func (x *hearing) at(ms int) {
	end := time.Unix(1000, 0).Add(time.Duration(ms) * time.Millisecond)
	for {
		due, ok := x.next()
		if !ok || due.After(end) {
			break
		}
		x.until(due)
		x.settle(x.now)
	}
	x.until(end)
}

func (x *hearing) until(at time.Time) { x.now = x.now.Add(max(0, at.Sub(x.now))) }

// copies lets masters, counted from 1, publish at one moment each.
func (x *hearing) copies(ms int, masters ...int) {
	x.at(ms)
	for _, m := range masters {
		x.count(message{channel: "c", payload: "m"}, m-1, x.now)
	}
}

func (x *hearing) want(times string) {
	x.t.Helper()
	if got := strings.Join(x.told, " "); got != times {
		x.t.Errorf("told at %q, want %q", got, times)
	}
}

func TestMessageIsToldOnceWhenAQuorumPublishedIt(t *testing.T) {
	x := newHearing(t, 5)
	x.copies(0, 1)
	x.copies(10, 4)
	x.want("")
	x.copies(20, 2)
	x.want("20ms")
	x.copies(30, 3)
	x.copies(190, 5)
	if x.size != 0 || len(x.tallies) != 0 {
		t.Errorf("%d bytes of %d messages are remembered after the last copy", x.size, len(x.tallies))
	}
	x.at(20000)
	x.want("20ms")
	if x.size != 0 || len(x.order) != 0 {
		t.Errorf("%d bytes of %d messages are remembered", x.size, len(x.order))
	}
}

func TestSameMessageTwiceIsToldTwice(t *testing.T) {
	x := newHearing(t, 5)
	x.copies(0, 1, 1, 2)
	x.copies(1, 2, 3, 4, 5)
	x.want("1ms")
	x.copies(2, 3, 5)
	x.want("1ms 2ms")
	x.copies(3, 4)
	x.at(20000)
	x.want("1ms 2ms")
}

func TestMessageWithoutQuorumIsToldAfterTheGrace(t *testing.T) {
	x := newHearing(t, 5)
	x.copies(0, 1)
	x.copies(30, 2)
	x.at(20000)
	x.want("50ms")
}

// An early report is repeated when a later copy may have made the lock free.
func TestMessageIsToldAgainWhenItsQuorumComesLate(t *testing.T) {
	x := newHearing(t, 5)
	x.copies(0, 1)
	x.copies(100, 2)
	x.want("50ms")
	x.copies(120, 3)
	x.want("50ms 120ms")
	x.copies(130, 4, 5)
	x.at(20000)
	x.want("50ms 120ms")

	x = newHearing(t, 5)
	x.copies(0, 1)
	x.copies(100, 2)
	x.at(20000)
	x.want("50ms 150ms")
}

// A subscription becomes active on the masters at different moments.
func TestMasterThatBeganLaterMissesACopy(t *testing.T) {
	x := newHearing(t, 5)
	x.copies(0, 1, 2, 3)
	x.copies(20, 1, 2, 3, 4, 5)
	x.at(20000)
	x.want("0s 20ms")
}

// A master that was stopped publishes late.
func TestLateCopyOfASilentMaster(t *testing.T) {
	x := newHearing(t, 5)
	x.copies(0, 1, 2, 3, 4)
	x.copies(7000, 5)
	x.at(20000)
	x.want("0s")
}

// A master that missed a message is behind. It counts like the others once its connection begins anew, or
// the message was not heard for a while.
func TestMasterThatMissedACopyCountsAgain(t *testing.T) {
	for what, row := range map[string]struct {
		goesOn func(x *hearing)
		again  int
		told   string
	}{
		"nothing":          {func(*hearing) {}, 1000, "0s 1.05s"},
		"a new connection": {func(x *hearing) { x.begin(2) }, 1000, "0s 1s"},
		"a while":          {func(*hearing) {}, 9000, "0s 9s"},
	} {
		t.Run(what, func(t *testing.T) {
			x := newHearing(t, 3)
			x.copies(0, 1, 2)
			row.goesOn(x)
			x.copies(row.again, 1, 3)
			x.at(30000)
			x.want(row.told)
		})
	}
}

// A new connection takes no copy back that its master has published before.
func TestMasterThatIsAheadStaysSoWhenItsConnectionBeginsAnew(t *testing.T) {
	x := newHearing(t, 3)
	x.copies(0, 1)
	x.begin(0)
	x.copies(10, 2)
	x.want("10ms")
}

// What a quorum has published is told, although another master published more.
func TestMessageOfAQuorumBesideALead(t *testing.T) {
	x := newHearing(t, 3)
	x.copies(0, 1, 1, 2)
	x.want("0s")
	x.at(20000)
	x.want("0s 50ms")
}

func TestMemoryOfMessagesIsBounded(t *testing.T) {
	x := newHearing(t, 5)
	x.limit = 10 * (message{channel: "c", payload: "99"}).bytes()
	for i := range 50 {
		x.count(message{channel: "c", payload: fmt.Sprintf("%02d", i)}, 0, x.now)
	}
	if len(x.tallies) != 10 || x.size > x.limit {
		t.Errorf("%d messages of %d bytes are remembered, want 10 of at most %d", len(x.tallies), x.size, x.limit)
	}
	if len(x.told) != 40 || x.told[0] != "00@0s" {
		t.Errorf("told %q; what is forgotten must have been told", x.told)
	}
	x.at(20000)
	if len(x.told) != 50 {
		t.Errorf("%d of 50 messages were told", len(x.told))
	}
}

// A copy that joins a complete incident may belong to the next one, which its master then
// completes.
func TestMessageIsToldAgainWhenACopyMayBeOfAnEarlierOne(t *testing.T) {
	x := newHearing(t, 5)
	x.copies(0, 1, 2, 3)
	x.copies(100, 1, 3)
	x.at(155)
	x.want("0s 150ms")
	x.copies(160, 4)
	x.at(20000)
	x.want("0s 150ms 210ms")
}

// Whatever the masters missed, a message that a quorum published is reported no earlier
// than its first copy, and soon after the quorum.
func TestNoMessageOfAQuorumIsLost(t *testing.T) {
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 1))
		masters := 3 + 2*random.IntN(3)
		x := newHearing(t, masters)
		x.times.memory = time.Duration(1+random.IntN(5)) * time.Second
		type copy struct{ at, master, message int }
		var copies []copy
		busy := make([]int, masters) // a master publishes in order
		const messages = 60
		at := 0
		for m := range messages {
			at += random.IntN(1 + random.IntN(300))
			order := random.Perm(masters)
			published := quorum.Size(masters) + random.IntN(masters-quorum.Size(masters)+1)
			for _, i := range order[:published] {
				delay := random.IntN(5)
				if random.IntN(10) == 0 {
					delay = random.IntN(3000) // the master was stopped
				}
				busy[i] = max(busy[i], at+delay)
				copies = append(copies, copy{busy[i], i, m})
			}
			if random.IntN(3) == 0 { // a lost copy
				i := order[0]
				busy[i] = max(busy[i], at)
				copies = append(copies, copy{busy[i], i, -1})
			}
		}
		slices.SortStableFunc(copies, func(a, b copy) int { return a.at - b.at })
		first, last, known := make([]time.Duration, messages), make([]time.Duration, messages), make([]bool, messages)
		for _, c := range copies {
			x.copies(c.at, c.master+1)
			if c.message < 0 {
				continue
			}
			if now := x.now.Sub(time.Unix(1000, 0)); !known[c.message] {
				known[c.message] = true
				first[c.message], last[c.message] = now, now
			} else {
				last[c.message] = now
			}
		}
		x.at(copies[len(copies)-1].at + 20000)
		var told []time.Duration
		for _, word := range x.told {
			d, err := time.ParseDuration(word)
			if err != nil {
				t.Fatal(err)
			}
			told = append(told, d)
		}
		for m := range messages {
			if !slices.ContainsFunc(told, func(d time.Duration) bool {
				return d >= first[m] && d <= last[m]+x.times.grace+2*time.Millisecond
			}) {
				t.Fatalf("seed %d: message %d, published from %v to %v, was not told", seed, m, first[m], last[m])
			}
		}
	}
}

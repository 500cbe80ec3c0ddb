package lease

import (
	"testing"
	"time"
	"unsafe"

	"redlock-proxy/redlock"
)

const second = time.Second

var (
	start  = time.Now()
	limits = Limits{MasterTimeout: 50 * time.Millisecond, ClockDrift: 0.01}
)

func at(after time.Duration) time.Time { return start.Add(after) }

func TestWhatIsDueForALock(t *testing.T) {
	usual := Rule{Renew: 60 * second}
	held := newTerm(9*second, start, limits)
	renewedAt := func(since time.Duration) term {
		l := held
		l.since = at(since)
		return l
	}
	pending := held
	pending.pending = true
	lastPending := renewedAt(57 * second)
	lastPending.pending = true
	undecided := held
	undecided.again = at(4 * second)
	late := held
	late.again = at(8500 * time.Millisecond)
	for _, row := range []struct {
		name string
		term term
		rule Rule
		now  time.Duration
		want step
		in   time.Duration
	}{
		{"just taken", held, usual, 0, wait, 3 * second},
		{"before a third of its TTL", held, usual, 2 * second, wait, second},
		{"after a third", held, usual, 3 * second, renew, 0},
		{"late", held, usual, 8 * second, renew, 0},
		{"its validity is over", held, usual, 8908 * time.Millisecond, lose, 0},
		{"renewed since", renewedAt(3 * second), usual, 5 * second, wait, second},
		{"while the masters are asked", pending, usual, 4 * second, wait, 4908 * time.Millisecond},
		{"no answer before its validity is over", pending, usual, 9 * second, lose, 0},
		{"undecided", undecided, usual, 4500 * time.Millisecond, wait, 400 * time.Millisecond},
		{"undecided, and time to ask again", undecided, usual, 4900 * time.Millisecond, renew, 0},
		{"undecided shortly before its validity is over", late, usual, 8600 * time.Millisecond, wait, 308 * time.Millisecond},

		{"the last renewal within the cap", renewedAt(57 * second), usual, 60 * second, renew, 0},
		{"the next one would be beyond the cap", renewedAt(58 * second), usual, 58 * second, wait, 9 * second},
		{"late for the last one", renewedAt(57 * second), usual, 61 * second, wait, 5 * second},
		{"ended after the cap", renewedAt(58 * second), usual, 67 * second, forget, 0},
		{"a cap below a third of the TTL", held, Rule{Renew: 2 * second}, 0, wait, 9 * second},
		{"a reload made the cap shorter", renewedAt(30 * second), Rule{Renew: 20 * second}, 33 * second, wait, 6 * second},
		{"a reload removed renew and on_disconnect", held, Rule{}, 0, forget, 0},

		{"only released on disconnect", held, Rule{Release: true}, 3 * second, wait, 6 * second},
		{"ended before its connection", held, Rule{Release: true}, 9 * second, forget, 0},
		{"no TTL yet", newTerm(0, start, limits), usual, 20 * second, wait, 40 * second},
		{"never got a TTL", newTerm(0, start, limits), usual, 60 * second, forget, 0},
		{"no TTL, released on disconnect", newTerm(0, start, limits), Rule{Release: true}, 600 * second, wait, awaitTTL},
		{"a TTL too short to be renewed", newTerm(299*time.Millisecond, start, limits), usual, 200 * time.Millisecond, wait, 99 * time.Millisecond},
		{"the shortest that is renewed", newTerm(300*time.Millisecond, start, limits), usual, 100 * time.Millisecond, renew, 0},
		{"no answer before its validity is over, after the cap", lastPending, usual, 66 * second, lose, 0},
		{"for ever, nearly", newTerm(100*365*24*time.Hour, start, limits), Rule{Renew: time.Hour}, 0, wait, 100 * 365 * 24 * time.Hour},
	} {
		if act, in := row.term.next(at(row.now), row.rule, limits); act != row.want || in != row.in {
			t.Errorf("%s: step %d in %v, want %d in %v", row.name, act, in, row.want, row.in)
		}
	}
}

// The client was promised renewals when it took the lock. A reload that raises the masters'
// timeout does not end them without a word.
func TestALockThatWasLongEnoughStaysSo(t *testing.T) {
	held, slow := newTerm(9*second, start, limits), limits
	slow.MasterTimeout = 2 * second
	for now, want := range map[time.Duration]step{3 * second: renew, 9 * second: lose} {
		if act, _ := held.next(at(now), Rule{Renew: time.Hour}, slow); act != want {
			t.Errorf("step %d after %v, want %d", act, now, want)
		}
	}
}

// A re-entrant script may set a TTL, or leave the lock what it has.
func TestWhatAReentranceLeaves(t *testing.T) {
	for _, row := range []struct{ left, ttl, ends time.Duration }{
		{9 * second, 9 * second, 14 * second},
		{4 * second, 9 * second, 9 * second},
		{20 * second, 20 * second, 25 * second},
		{0, 0, 5 * second},
	} {
		l := newTerm(9*second, start, limits)
		l.reentered(row.left, at(5*second), limits)
		if ends := l.since.Add(l.ttl).Sub(start); l.ttl != row.ttl || ends != row.ends || l.brief != (row.ttl == 0) {
			t.Errorf("%v left: a TTL of %v, ends at %v, brief %v; want %v, %v", row.left, l.ttl, ends, l.brief, row.ttl, row.ends)
		}
	}
}

// stepped returns a time read after the wall clock was stepped. Its monotonic part stays.
func stepped(t time.Time, by time.Duration) time.Time {
	wall := (*uint64)(unsafe.Pointer(&t)) // the first field: a flag, 33 bits of seconds, 30 of nanoseconds
	*wall += uint64(by/time.Second) << 30
	return t
}

// A machine that was suspended has a monotonic clock that stood still, and a wall clock may be set
// back. Whichever says more counts.
func TestTheClockThatSaysMoreCounts(t *testing.T) {
	if by := stepped(start, time.Hour); by.Sub(start) != 0 || by.Round(0).Sub(start.Round(0)) != time.Hour {
		t.Fatal("times have another form now")
	}
	held := newTerm(9*second, start, limits)
	for name, now := range map[string]time.Time{
		"the machine was suspended": stepped(at(second), time.Hour),
		"the clock was set back":    stepped(at(10*second), -time.Hour),
	} {
		if act, _ := held.next(now, Rule{Renew: 10 * time.Hour}, limits); act != lose {
			t.Errorf("%s: step %d, want %d", name, act, lose)
		}
	}
}

func TestWhatARenewalFinds(t *testing.T) {
	for _, row := range []struct {
		name    string
		outcome redlock.Outcome
		want    finding
	}{
		{"extended", redlock.Outcome{Verdict: redlock.Won, Since: at(3 * second)}, renewed},
		{"released, or taken by another", redlock.Outcome{Verdict: redlock.Lost}, ended},
		{"a minority still has it", redlock.Outcome{Verdict: redlock.Lost, Number: 2}, undecided},
		{"too few answers", redlock.Outcome{Verdict: redlock.NoQuorum}, undecided},
	} {
		l := newTerm(9*second, start, limits)
		l.pending = true
		if got := l.answered(row.outcome, 9*second, at(4*second)); got != row.want || l.pending {
			t.Errorf("%s: %d, still pending %v, want %d", row.name, got, l.pending, row.want)
		}
		switch act, in := l.next(at(4*second), Rule{Renew: 60 * second}, limits); {
		case row.want == renewed && in != 2*second:
			t.Errorf("%s: next in %v", row.name, in)
		case row.want == undecided && (act != wait || in != 900*time.Millisecond):
			t.Errorf("%s: step %d in %v", row.name, act, in)
		}
	}
}

func TestWhatAClientSetsCounts(t *testing.T) {
	l := newTerm(9*second, start, limits)
	rule := Rule{Renew: 60 * second}
	l.prolonged(30*second, at(second), limits)
	if act, in := l.next(at(second), rule, limits); act != wait || in != 10*second {
		t.Errorf("longer: step %d in %v", act, in)
	}
	l.prolonged(3*second, at(2*second), limits)
	if act, in := l.next(at(2*second), rule, limits); act != wait || in != second {
		t.Errorf("shorter: step %d in %v", act, in)
	}
	l.prolonged(0, at(3*second), limits)
	if act, in := l.next(at(3*second), rule, limits); act != wait || in != awaitTTL {
		t.Errorf("for ever: step %d in %v", act, in)
	}
	l.prolonged(9*second, at(30*second), limits)
	if act, in := l.next(at(58*second), rule, limits); act != lose || in != 0 {
		t.Errorf("not renewed since: step %d in %v", act, in)
	}
	// A renewal to a longer TTL than the client has set meanwhile proves the client's only.
	short := newTerm(9*second, start, limits)
	short.prolonged(3*second, at(2*second), limits)
	short.answered(redlock.Outcome{Verdict: redlock.Won, Since: at(4 * second)}, 9*second, at(4*second))
	if short.since != at(4*second) {
		t.Errorf("a shorter TTL counts from %v", short.since.Sub(start))
	}
	// An answer to a renewal that began before the client's change does not make the
	// lock older.
	l.prolonged(9*second, at(40*second), limits)
	l.answered(redlock.Outcome{Verdict: redlock.Won, Since: at(39 * second)}, 9*second, at(41*second))
	if l.since != at(40*second) {
		t.Errorf("its TTL counts from %v", l.since.Sub(start))
	}
	// A longer TTL counts from its own beginning, even if a renewal came later.
	longer := newTerm(9*second, start, limits)
	longer.answered(redlock.Outcome{Verdict: redlock.Won, Since: at(4 * second)}, 9*second, at(4*second))
	longer.prolonged(30*second, at(3*second), limits)
	if longer.since != at(3*second) {
		t.Errorf("a longer TTL set before a renewal counts from %v", longer.since.Sub(start))
	}
	longer.answered(redlock.Outcome{Verdict: redlock.Won, Since: at(20 * second)}, 30*second, at(20*second))
	longer.prolonged(32*second, at(10*second), limits)
	if longer.since != at(18*second) {
		t.Errorf("what a later renewal left counts from %v", longer.since.Sub(start))
	}
	// A renewal that was asked for before a longer TTL was set proves the shorter one only.
	l.prolonged(30*second, at(50*second), limits)
	l.answered(redlock.Outcome{Verdict: redlock.Won, Since: at(51 * second)}, 9*second, at(52*second))
	if l.since != at(50*second) {
		t.Errorf("a longer TTL counts from %v", l.since.Sub(start))
	}
	l.answered(redlock.Outcome{Verdict: redlock.Won, Since: at(75 * second)}, 9*second, at(76*second))
	if l.since != at(54*second) {
		t.Errorf("what is left counts from %v", l.since.Sub(start))
	}
}

// All copies have ended by the end of the longest TTL that one of them may have got.
func TestWhenAllCopiesHaveEnded(t *testing.T) {
	const never = -1
	for name, row := range map[string]struct {
		change func(l *term)
		want   time.Duration
	}{
		"as it was taken":                {func(*term) {}, 9 * second},
		"a renewal has no answer":        {func(l *term) { l.pending = true }, 14 * second},
		"a renewal was undecided":        {func(l *term) { l.answered(redlock.Outcome{}, 9*second, at(2*second)) }, 11 * second},
		"a command was undecided":        {func(l *term) { l.attempted(20*second, at(second)) }, 21 * second},
		"a PERSIST was undecided":        {func(l *term) { l.attempted(0, at(second)) }, never},
		"and after that another TTL":     {func(l *term) { l.attempted(0, at(second)); l.attempted(second, at(2*second)) }, never},
		"it has no TTL":                  {func(l *term) { l.prolonged(0, at(second), limits) }, never},
		"it has none, and one was to be": {func(l *term) { l.prolonged(0, at(second), limits); l.attempted(second, at(2*second)) }, never},
	} {
		l := newTerm(9*second, start, limits)
		row.change(&l)
		ends := l.ends(at(5 * second))
		if row.want == never != ends.IsZero() || row.want != never && ends != at(row.want) {
			t.Errorf("%s: %v", name, ends.Sub(start))
		}
	}
}

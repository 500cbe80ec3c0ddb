package lease

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/redlock"
)

const (
	token   = "0123456789abcdef-token-a"
	another = "0123456789abcdef-token-b"
)

// fakeMasters hold one lock for each key, and answer as told.
type fakeMasters struct {
	mu     sync.Mutex
	locks  map[string]fakeLock
	answer func() redlock.Verdict // nil: Won, if they hold the lock
	takes  time.Duration          // an answer
	asked  []string
	until  time.Time // of the last release
	hashes int       // renewals of hashes
	most   int       // questions at the same time
	now    int
}

type fakeLock struct {
	value string
	ends  time.Time
}

func (m *fakeMasters) put(key, value string, ttl time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.locks == nil {
		m.locks = map[string]fakeLock{}
	}
	m.locks[key] = fakeLock{value, time.Now().Add(ttl)}
}

func (m *fakeMasters) holds(key, value string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.has(key, value)
}

func (m *fakeMasters) has(key, value string) bool {
	l, ok := m.locks[key]
	return ok && l.value == value && time.Now().Before(l.ends)
}

func (m *fakeMasters) begin(what string) {
	m.mu.Lock()
	m.asked = append(m.asked, what)
	m.now++
	m.most = max(m.most, m.now)
	takes := m.takes
	m.mu.Unlock()
	time.Sleep(takes)
	m.mu.Lock()
	m.now--
}

func (m *fakeMasters) Renew(_ context.Context, r redlock.RenewRequest) redlock.Outcome {
	began := time.Now()
	m.begin("extend " + string(r.Key) + " " + r.TTL.String())
	defer m.mu.Unlock()
	if r.Hash {
		m.hashes++
	}
	if m.answer != nil {
		if v := m.answer(); v != redlock.Won {
			return redlock.Outcome{Verdict: v}
		}
	}
	if !m.has(string(r.Key), string(r.Holder)) {
		return redlock.Outcome{Verdict: redlock.Lost}
	}
	m.locks[string(r.Key)] = fakeLock{string(r.Holder), time.Now().Add(r.TTL)}
	return redlock.Outcome{Verdict: redlock.Won, Since: began}
}

func (m *fakeMasters) Release(_ context.Context, r redlock.ReleaseRequest) redlock.Outcome {
	m.begin("release " + string(r.Key))
	defer m.mu.Unlock()
	m.until = r.Until
	if m.answer != nil {
		if v := m.answer(); v != redlock.Won {
			return redlock.Outcome{Verdict: v}
		}
	}
	if key := string(r.Key); m.has(key, string(r.Value)) {
		delete(m.locks, key)
		return redlock.Outcome{Verdict: redlock.Won}
	}
	return redlock.Outcome{Verdict: redlock.Lost}
}

type bench struct {
	*Keeper
	masters fakeMasters
	lost    atomic.Int32 // locks of which the connection was told
	holder  *Holder
	log     bytes.Buffer
	rule    Rule
}

// onBench runs a test with a Keeper, one connection and time that passes only while
// everything waits.
func onBench(t *testing.T, rule Rule, test func(t *testing.T, b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{rule: rule}
		b.Keeper = New(Config{
			Locker: &b.masters, Rule: func(int, []byte) Rule { return b.rule },
			Limits: func() Limits { return limits }, Log: slog.New(slog.NewTextHandler(&b.log, nil)),
		})
		b.holder = b.NewHolder(func() { b.lost.Add(1) })
		defer b.Close(t.Context())
		test(t, b)
	})
}

func (b *bench) take(key, value string, ttl time.Duration) {
	b.masters.put(key, value, ttl)
	b.holder.Took(0, []byte(key), []byte(value), ttl, time.Now())
}

func (b *bench) wantHeld(t *testing.T, key string, want bool) {
	t.Helper()
	if b.masters.holds(key, token) != want {
		t.Errorf("held is %v, want %v", !want, want)
	}
}

func (b *bench) wantLost(t *testing.T, want int) {
	t.Helper()
	if lost := int(b.lost.Load()); lost != want {
		t.Errorf("told %d times that a lock is lost, want %d", lost, want)
	}
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestALockIsRenewedWhileItsConnectionIsOpen(t *testing.T) {
	onBench(t, Rule{Renew: time.Minute}, func(t *testing.T, b *bench) {
		b.masters.takes = 5 * time.Millisecond
		b.take("k", token, second)
		for range 50 {
			pass(100 * time.Millisecond)
			b.wantHeld(t, "k", true)
		}
		if n := len(b.masters.asked); n < 10 || n > 15 {
			t.Errorf("renewed %d times in 5 s", n)
		}
		b.holder.Close(true)
		pass(1100 * time.Millisecond) // a renewal may have been under way
		b.wantHeld(t, "k", false)
		b.wantLost(t, 0)
		if c := b.Counts(); c.Held != 0 || c.Renewals["renewed"] < 10 || c.Releases["released"] != 0 {
			t.Errorf("%+v", c)
		}
	})
}

func TestNoLockOutlivesTheCapAndItsTTL(t *testing.T) {
	onBench(t, Rule{Renew: 10 * second}, func(t *testing.T, b *bench) {
		b.take("k", token, 3*second)
		pass(10 * second)
		b.wantHeld(t, "k", true)
		pass(3 * second)
		b.wantHeld(t, "k", false)
		b.wantLost(t, 0)
		if b.Any() {
			t.Error("it still has a lease")
		}
	})
}

func TestAReleasedLockEndsItsLeaseQuietly(t *testing.T) {
	for name, end := range map[string]func(b *bench){
		"elsewhere":            func(b *bench) { b.masters.put("k", "", 0) },
		"taken over elsewhere": func(b *bench) { b.masters.put("k", another, time.Minute) },
		"through this proxy":   func(b *bench) { b.Ended(redlock.Outcome{Verdict: redlock.Won, Since: time.Now()}, 0, nil, []byte("k")) },
	} {
		t.Run(name, func(t *testing.T) {
			onBench(t, Rule{Renew: time.Minute}, func(t *testing.T, b *bench) {
				b.take("k", token, 3*second)
				end(b)
				pass(time.Minute)
				b.wantLost(t, 0)
				if n := len(b.masters.asked); n > 1 || b.Any() {
					t.Errorf("asked %q", b.masters.asked)
				}
			})
		})
	}
}

func TestAConnectionWhoseLockIsLostIsClosed(t *testing.T) {
	onBench(t, Rule{Renew: time.Minute}, func(t *testing.T, b *bench) {
		b.take("k", token, 3*second)
		b.take("other", token, 3*second)
		pass(2100 * time.Millisecond) // renewed after 1 s and 2 s
		b.masters.mu.Lock()
		b.masters.answer = func() redlock.Verdict { return redlock.NoQuorum }
		b.masters.mu.Unlock()
		pass(2800 * time.Millisecond)
		b.wantLost(t, 0)
		pass(100 * time.Millisecond)
		b.wantLost(t, 1)
		if c := b.Counts(); c.Lost != 1 || c.Renewals["undecided"] < 6 {
			t.Errorf("%+v", c)
		}
	})
}

func TestMastersThatAreBackInTimeLoseNothing(t *testing.T) {
	onBench(t, Rule{Renew: time.Minute}, func(t *testing.T, b *bench) {
		away := true
		b.masters.answer = func() redlock.Verdict {
			if away {
				return redlock.NoQuorum
			}
			return redlock.Won
		}
		b.take("k", token, 3*second)
		pass(2 * second)
		b.masters.mu.Lock()
		away = false
		b.masters.mu.Unlock()
		pass(20 * second)
		b.wantHeld(t, "k", true)
		b.wantLost(t, 0)
	})
}

// A renewal whose masters do not answer at all does not hide that the time is over.
func TestAHungRenewalDoesNotDelayTheEnd(t *testing.T) {
	onBench(t, Rule{Renew: time.Minute}, func(t *testing.T, b *bench) {
		b.masters.takes = time.Hour
		b.take("k", token, 3*second)
		pass(2900 * time.Millisecond)
		b.wantLost(t, 0)
		pass(100 * time.Millisecond)
		b.wantLost(t, 1)
	})
}

// A machine may be suspended while the masters are asked, until the lock is another
// client's. The answer may come before the owner's goroutine looks at the clock.
func TestALockThatEndedDuringARenewalIsLost(t *testing.T) {
	onBench(t, Rule{Renew: 10 * time.Hour}, func(t *testing.T, b *bench) {
		b.masters.answer = func() redlock.Verdict {
			b.mu.Lock()
			defer b.mu.Unlock()
			for _, l := range b.leases {
				l.term.taken, l.term.since = l.term.taken.Add(-time.Hour), l.term.since.Add(-time.Hour)
			}
			return redlock.Lost
		}
		b.take("k", token, 3*second)
		pass(1100 * time.Millisecond)
		if b.wantLost(t, 1); b.Any() {
			t.Error("it still has a lease")
		}
	})
}

func TestAPanicIsAnUndecidedRenewal(t *testing.T) {
	onBench(t, Rule{Renew: time.Minute}, func(t *testing.T, b *bench) {
		first := true
		b.masters.answer = func() redlock.Verdict {
			if first {
				first = false
				panic("a defect")
			}
			return redlock.Won
		}
		b.take("k", token, 3*second)
		pass(10 * second)
		b.wantHeld(t, "k", true)
		if !strings.Contains(b.log.String(), "a defect") {
			t.Errorf("logged %q", b.log.String())
		}
	})
}

func TestALockEndsWithItsClientsConnection(t *testing.T) {
	for _, row := range []struct {
		name        string
		rule        Rule
		value       string
		left        bool
		held        bool
		result      string
		wasReleased bool
	}{
		{"release", Rule{Release: true}, token, true, false, "released", false},
		{"release and renew", Rule{Release: true, Renew: time.Minute}, token, true, false, "released", false},
		{"it had been released elsewhere", Rule{Release: true}, token, true, false, "absent", true},
		{"keep", Rule{Renew: time.Minute}, token, true, true, "", false},
		{"the proxy ends the connection", Rule{Release: true}, token, false, true, "", false},
		{"a value that clients may share", Rule{Release: true}, "1", true, true, "short_value", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			onBench(t, row.rule, func(t *testing.T, b *bench) {
				b.take("k", row.value, 30*second)
				pass(5 * second)
				if row.wasReleased {
					b.masters.put("k", another, time.Minute)
				}
				b.holder.Close(row.left)
				pass(time.Millisecond)
				if got := b.masters.holds("k", row.value); got != row.held {
					t.Errorf("held is %v, want %v", got, row.held)
				}
				if row.wasReleased && !b.masters.holds("k", another) {
					t.Error("another client's lock was released")
				}
				for result, n := range b.Counts().Releases {
					if (result == row.result) != (n == 1) {
						t.Errorf("%s: %d", result, n)
					}
				}
			})
		})
	}
}

// A release spares what the same value takes later, as after a new connection. It reaches the
// copies that an undecided renewal has extended.
func TestAReleaseKnowsWhenItsLockEnds(t *testing.T) {
	for _, row := range []struct {
		verdict redlock.Verdict
		ends    time.Duration
	}{{redlock.Won, 4*second + 5*time.Millisecond}, {redlock.NoQuorum, 4615 * time.Millisecond}} {
		onBench(t, Rule{Renew: time.Minute, Release: true}, func(t *testing.T, b *bench) {
			began := time.Now()
			b.masters.takes = 5 * time.Millisecond
			b.masters.answer = func() redlock.Verdict { return row.verdict }
			b.take("k", token, 3*second)
			pass(1700 * time.Millisecond)
			b.holder.Close(true)
			pass(10 * time.Millisecond)
			b.masters.mu.Lock()
			defer b.masters.mu.Unlock()
			if ends := b.masters.until.Sub(began); ends != row.ends {
				t.Errorf("%v: it ends after %v, want %v", row.verdict, ends, row.ends)
			}
		})
	}
}

// An undecided command may have given some copies a longer TTL. They are the client's, too.
func TestAReleaseReachesWhatAnUndecidedCommandProlonged(t *testing.T) {
	for _, row := range []struct {
		set  []time.Duration // 0: it removes the TTL
		ends time.Duration   // 0: never
	}{
		{[]time.Duration{time.Minute}, 61 * second},
		{[]time.Duration{time.Minute, 40 * second}, 61 * second},
		{[]time.Duration{5 * second}, 30 * second},
		{[]time.Duration{0}, 0},
	} {
		onBench(t, Rule{Release: true}, func(t *testing.T, b *bench) {
			began := time.Now()
			b.take("k", token, 30*second)
			pass(second)
			for _, ttl := range row.set {
				b.Prolonged(redlock.Outcome{Verdict: redlock.NoQuorum, Since: time.Now()}, 0, []byte("k"), ttl)
			}
			b.holder.Close(true)
			pass(time.Millisecond)
			want := time.Time{}
			if row.ends > 0 {
				want = began.Add(row.ends)
			}
			b.masters.mu.Lock()
			defer b.masters.mu.Unlock()
			if len(b.masters.asked) != 1 || !b.masters.until.Equal(want) {
				t.Errorf("%v: asked %q, ends after %v, want %v", row.set, b.masters.asked, b.masters.until.Sub(began), row.ends)
			}
		})
	}
}

// A hash is renewed by its holder's field. At the end of the connection it keeps its TTL.
func TestAHashIsRenewedAndNotReleased(t *testing.T) {
	onBench(t, Rule{Renew: time.Minute, Release: true}, func(t *testing.T, b *bench) {
		b.masters.put("k", token, 3*second)
		o := redlock.Outcome{Verdict: redlock.Won, Since: time.Now(), Effects: []redlock.Effect{{
			Key: []byte("k"), Change: redlock.KeyCreated, Holder: []byte(token), TTL: 3 * second,
		}}}
		b.Ran(o, 0, b.holder)
		pass(10 * second)
		b.wantHeld(t, "k", true)
		b.holder.Close(true)
		pass(time.Millisecond)
		b.wantHeld(t, "k", true)
		pass(3 * second)
		b.wantHeld(t, "k", false)
		if c := b.Counts(); c.Releases["short_value"] != 1 || b.masters.hashes != len(b.masters.asked) {
			t.Errorf("%+v, %d of %q were about hashes", c, b.masters.hashes, b.masters.asked)
		}
	})
}

// Another client may give a hash a second field, or take it over. The masters tell which, at
// once.
func TestAHashWithOtherFieldsIsAskedAbout(t *testing.T) {
	for _, row := range []struct {
		holder  string // of the field that the masters still have
		givenUp bool
		asked   int
		leases  bool
	}{
		{token, false, 1, true},
		{another, false, 1, false},
		{token, true, 0, true},
	} {
		onBench(t, Rule{Renew: time.Minute}, func(t *testing.T, b *bench) {
			did := func(change redlock.Change, holder *Holder) {
				e := redlock.Effect{Key: []byte("k"), Change: change, Holder: []byte(token), TTL: 9 * second}
				b.Ran(redlock.Outcome{Verdict: redlock.Won, Since: time.Now(), Effects: []redlock.Effect{e}}, 0, holder)
			}
			b.masters.put("k", row.holder, 9*second)
			did(redlock.KeyCreated, b.holder)
			if row.givenUp {
				b.Ended(redlock.Outcome{Verdict: redlock.NoQuorum, Since: time.Now()}, 0, b.holder, []byte("k"))
			}
			pass(second)
			did(redlock.KeyReplaced, b.NewHolder(func() {}))
			pass(time.Millisecond)
			b.wantLost(t, 0)
			if len(b.masters.asked) != row.asked || b.Any() != row.leases {
				t.Errorf("%+v: asked %q, leases: %v", row, b.masters.asked, b.Any())
			}
		})
	}
}

// The next holder of a key has nothing to fear from a connection that held it before,
// even if all clients use one constant value.
func TestAKeyHasOneLease(t *testing.T) {
	onBench(t, Rule{Renew: time.Minute, Release: true}, func(t *testing.T, b *bench) {
		b.take("k", token, 3*second)
		next := b.NewHolder(func() {})
		next.Took(0, []byte("k"), []byte(token), 3*second, time.Now())
		b.holder.Close(true)
		pass(10 * second)
		b.wantHeld(t, "k", true)
		next.Close(false)
		pass(3 * second)
		b.wantHeld(t, "k", false)
	})
}

// A lock that was given up has its TTL, and on_disconnect. A client that sets its TTL works
// under it again.
func TestAGivenUpLockKeepsItsTTL(t *testing.T) {
	onBench(t, Rule{Renew: time.Minute, Release: true}, func(t *testing.T, b *bench) {
		giveUp := func() {
			b.Ended(redlock.Outcome{Verdict: redlock.NoQuorum, Since: time.Now()}, 0, b.holder, []byte("k"))
		}
		b.take("k", token, 3*second)
		giveUp()
		pass(2900 * time.Millisecond)
		b.wantHeld(t, "k", true)
		pass(second)
		if b.wantLost(t, 0); b.Any() || len(b.masters.asked) > 0 {
			t.Errorf("leases: %v, asked %q", b.Any(), b.masters.asked)
		}

		b.take("k", token, 3*second)
		giveUp()
		b.Prolonged(redlock.Outcome{Verdict: redlock.Won, Since: time.Now()}, 0, []byte("k"), 3*second)
		pass(10 * second)
		b.wantHeld(t, "k", true)
		giveUp()
		b.holder.Close(true)
		pass(time.Millisecond)
		b.wantHeld(t, "k", false)
	})
}

// A release may be told only after the next client has taken the lock, and a grant only
// after a later one.
func TestLateNewsSparesTheNextHolder(t *testing.T) {
	onBench(t, Rule{Renew: time.Minute}, func(t *testing.T, b *bench) {
		began := time.Now()
		pass(10 * time.Millisecond)
		b.take("k", token, 3*second)
		b.Ended(redlock.Outcome{Verdict: redlock.Won, Since: began}, 0, nil, []byte("k"))
		b.Prolonged(redlock.Outcome{Verdict: redlock.Won, Since: began}, 0, []byte("k"), time.Hour)
		late := b.NewHolder(func() {})
		late.Took(0, []byte("k"), []byte(another), 3*second, began)
		pass(10 * second)
		b.wantHeld(t, "k", true)
		if late.Holds() || b.Counts().Held != 1 {
			t.Errorf("there is a lease for the late grant: %+v", b.Counts())
		}
		b.masters.put("k", another, time.Hour)
		pass(2 * second)
		if b.wantLost(t, 0); b.Any() {
			t.Error("a lease was left")
		}
	})
}

// A lock without a lease ends the lease of the lock before it.
func TestALockWithoutALeaseEndsTheOneBefore(t *testing.T) {
	onBench(t, Rule{Renew: time.Minute}, func(t *testing.T, b *bench) {
		b.take("k", token, 3*second)
		b.holder.Took(0, []byte("k"), nil, 3*second, time.Now())
		if b.Any() {
			t.Error("a hash has the lease of a string")
		}
		b.take("k", token, 3*second)
		b.mu.Lock()
		b.rule = Rule{}
		b.mu.Unlock()
		b.take("k", another, 3*second)
		if b.Any() {
			t.Error("a lock without a rule has the lease of the one before")
		}
	})
}

func TestATTLThatAClientSetsIsRenewed(t *testing.T) {
	onBench(t, Rule{Renew: time.Hour}, func(t *testing.T, b *bench) {
		b.take("k", token, 0) // SETNX, and then EXPIRE
		pass(second)
		b.masters.put("k", token, 30*second)
		b.Prolonged(redlock.Outcome{Verdict: redlock.Won, Since: time.Now()}, 0, []byte("k"), 30*second)
		pass(15 * second)
		if want := "extend k 30s"; len(b.masters.asked) != 1 || b.masters.asked[0] != want {
			t.Errorf("asked %q, want %q", b.masters.asked, want)
		}
		b.Prolonged(redlock.Outcome{Verdict: redlock.Won, Since: time.Now()}, 0, []byte("k"), 0) // PERSIST
		pass(10 * time.Minute)
		if n := len(b.masters.asked); n != 1 {
			t.Errorf("asked %q about a permanent lock", b.masters.asked)
		}
	})
}

// A client may change the TTL after a renewal is due and before it is sent.
func TestARenewalHasTheTTLOfItsMoment(t *testing.T) {
	onBench(t, Rule{Renew: time.Hour}, func(t *testing.T, b *bench) {
		b.take("k", token, 30*second)
		b.mu.Lock()
		l := b.leases[place{0, "k"}]
		b.mu.Unlock()
		for _, ttl := range []time.Duration{0, 20 * second} {
			b.Prolonged(redlock.Outcome{Verdict: redlock.Won, Since: time.Now()}, 0, []byte("k"), ttl)
			b.mayAsk()
			b.renew(l)
		}
		if want := "extend k 20s"; len(b.masters.asked) != 1 || b.masters.asked[0] != want {
			t.Errorf("asked %q, want %q", b.masters.asked, want)
		}
	})
}

func TestAReloadAppliesToLeases(t *testing.T) {
	onBench(t, Rule{Renew: time.Hour, Release: true}, func(t *testing.T, b *bench) {
		b.take("k", token, 3*second)
		pass(10 * second)
		b.mu.Lock() // the rule is read under it
		b.rule = Rule{}
		b.mu.Unlock()
		pass(6 * second)
		b.wantHeld(t, "k", false)
		b.wantLost(t, 0)
		if b.Any() {
			t.Error("there still is a lease")
		}
	})
}

func TestLimitsOfLeases(t *testing.T) {
	onBench(t, Rule{Renew: time.Hour, Release: true}, func(t *testing.T, b *bench) {
		b.holder.Took(0, []byte("hash"), nil, 30*second, time.Now())
		b.holder.Took(0, []byte("long"), []byte(strings.Repeat("x", maxLeaseSize)), 30*second, time.Now())
		b.holder.Took(0, []byte("short"), []byte(token), 299*time.Millisecond, time.Now())
		pass(second)
		for i := range maxOfHolder + 2 {
			b.take(strconv.Itoa(i), token, 30*second)
		}
		if got, want := fmt.Sprint(b.Counts().Refused), "map[draining:0 not_a_string:1 too_large:1 too_many:2 ttl_too_short:1]"; got != want {
			t.Errorf("refused %s, want %s", got, want)
		}
		if held := b.Counts().Held; held != maxOfHolder {
			t.Errorf("%d leases, want %d", held, maxOfHolder)
		}
		if n := strings.Count(b.log.String(), "lock taken but not renewed"); n != 4 {
			t.Errorf("logged %d lines: %s", n, b.log.String())
		}
		for _, advice := range []string{"spread them", "shorten them", "its client must renew it", "make the TTL longer"} {
			if !strings.Contains(b.log.String(), advice) {
				t.Errorf("no line says %q: %s", advice, b.log.String())
			}
		}
		if strings.Contains(b.log.String(), token) {
			t.Error("a value was logged")
		}
		b.masters.mu.Lock()
		b.masters.takes = 20 * time.Millisecond
		b.masters.mu.Unlock()
		pass(20 * second)
		b.masters.mu.Lock()
		if b.masters.most > maxAsking {
			t.Errorf("%d questions at the same time", b.masters.most)
		}
		b.masters.mu.Unlock()
		if !b.masters.holds("0", token) || !b.masters.holds(strconv.Itoa(maxOfHolder-1), token) {
			t.Error("not all were renewed")
		}
		b.holder.Close(true)
		pass(second)
		if b.masters.holds("0", token) || b.Any() {
			t.Errorf("%d leases are left", b.Counts().Held)
		}
	})
}

func TestCloseSendsTheReleasesOfThoseWhoLeft(t *testing.T) {
	onBench(t, Rule{Renew: time.Hour, Release: true}, func(t *testing.T, b *bench) {
		b.masters.takes = 10 * time.Millisecond
		staying := b.NewHolder(func() {})
		b.masters.put("staying", token, 3*second)
		staying.Took(0, []byte("staying"), []byte(token), 3*second, time.Now())
		for i := range 300 {
			b.take(strconv.Itoa(i), token, 30*second)
		}
		b.holder.Close(true)
		b.Close(t.Context())
		for i := range 300 {
			b.wantHeld(t, strconv.Itoa(i), false)
		}
		b.wantHeld(t, "staying", true)
		pass(3 * second)
		b.wantHeld(t, "staying", false)
		staying.Took(0, []byte("late"), []byte(token), 3*second, time.Now())
		if b.Any() || b.Counts().Refused["draining"] != 1 {
			t.Errorf("%+v", b.Counts())
		}
		staying.Close(true)
	})
}

func TestCloseDoesNotWaitForMastersLongerThanItMay(t *testing.T) {
	onBench(t, Rule{Release: true}, func(t *testing.T, b *bench) {
		b.masters.takes = 10 * second
		for i := range 3 * maxAsking {
			b.take(strconv.Itoa(i), token, 300*second)
		}
		b.holder.Close(true)
		ctx, cancel := context.WithTimeout(t.Context(), second)
		defer cancel()
		began := time.Now()
		b.Close(ctx)
		if took := time.Since(began); took > 21*second { // two questions of each worker
			t.Errorf("Close took %v", took)
		}
	})
}

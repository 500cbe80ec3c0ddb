package holds

import (
	"strconv"
	"testing"
	"time"
)

type client struct{ name string }

var (
	alice, bob = &client{"alice"}, &client{"bob"}
	one        = Lock{Key: []byte("lock:1")}
)

// A hold lasts from the grant to the release, for each key of each database.
func TestHolds(t *testing.T) {
	times, began := New(), time.Now()
	at := func(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }
	if _, ok := times.Released(one, at(0)); ok {
		t.Error("a lock that nobody took was held")
	}
	Took(times, one, alice, at(0), at(1))
	Took(times, Lock{DB: 1, Key: one.Key}, alice, at(0), at(2))
	if held, ok := times.Released(one, at(4)); !ok || held != 3*time.Second {
		t.Errorf("it was held for %s, %v", held, ok)
	}
	if _, ok := times.Released(one, at(5)); ok {
		t.Error("it was released twice")
	}
	if held, ok := times.Released(Lock{DB: 1, Key: one.Key}, at(5)); !ok || held != 3*time.Second {
		t.Errorf("in database 1 it was held for %s, %v", held, ok)
	}
	Took(times, one, alice, at(10), at(10)) // ends by its TTL
	Took(times, one, bob, at(20), at(20))
	if held, _ := times.Released(one, at(21)); held != time.Second {
		t.Errorf("after a lock that ended by itself: %s", held)
	}
}

// A wait lasts from the first try in vain to the grant, for each client. A client that has
// given up begins anew.
func TestWaits(t *testing.T) {
	times, began := New(), time.Now()
	at := func(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }
	for s := range 3 {
		Refused(times, one, alice, at(10*s), at(10*s+1))
	}
	Refused(times, one, bob, at(20), at(20))
	if waited := Took(times, one, alice, at(30), at(31)); waited != 31*time.Second {
		t.Errorf("alice waited %s", waited)
	}
	if waited := Took(times, one, alice, at(40), at(41)); waited != time.Second {
		t.Errorf("then she waited %s", waited)
	}
	if waited := Took(times, one, bob, at(100), at(102)); waited != 2*time.Second {
		t.Errorf("bob had given up, and waited %s", waited)
	}
	Refused(times, one, bob, at(200), at(200))
	Refused(times, one, bob, at(300), at(300))
	if waited := Took(times, one, bob, at(310), at(310)); waited != 10*time.Second {
		t.Errorf("bob began anew, and waited %s", waited)
	}
	var nobody *client
	Refused(times, one, nobody, at(400), at(400))
	if waited := Took(times, one, nobody, at(410), at(411)); waited != time.Second {
		t.Errorf("an unknown client waited %s", waited)
	}
}

// The tables are bounded, and the newest entries stay. Noting allocates nothing.
func TestTablesAreBounded(t *testing.T) {
	times, now := New(), time.Now()
	lock := func(i int) Lock { return Lock{Key: []byte("lock:" + strconv.Itoa(i))} }
	for i := range 4 * mostHeld {
		now = now.Add(time.Millisecond)
		Took(times, lock(i), alice, now, now)
	}
	if _, ok := times.Released(lock(4*mostHeld-1), now); !ok {
		t.Error("the newest is lost")
	}
	known := 0
	for i := range 4*mostHeld - 1 {
		if _, ok := times.Released(lock(i), now); ok {
			known++
		}
	}
	if known > mostHeld || known < mostHeld/2 {
		t.Errorf("%d are known", known)
	}
	if n := testing.AllocsPerRun(100, func() {
		Refused(times, one, bob, now, now)
		Took(times, one, bob, now, now)
		times.Released(one, now)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

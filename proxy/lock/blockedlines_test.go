package lock

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/redlock"
)

// A fakeList is a list on the masters, which announce its changes.
type fakeList struct {
	fakeChanges
	plane     fakeLockerPlane
	available atomic.Bool
	answer    func(redlock.RunRequest) redlock.Outcome // nil: pops

	mu       sync.Mutex
	elements []string
	wrong    bool // the key is of another type
	tried    int
}

func newFakeList() *fakeList {
	x := &fakeList{}
	x.available.Store(true)
	x.plane = newFakeLockerPlane(func(request any) redlock.Outcome { return x.try(request.(redlock.RunRequest)) })
	x.plane.lines = newLines(Changes{Available: x.available.Load, Subscribe: func(changed func(key []byte)) Tracker {
		x.changed, x.tracked = changed, map[string]bool{}
		return &x.fakeChanges
	}})
	return x
}

// try answers a command on the list.
func (x *fakeList) try(r redlock.RunRequest) redlock.Outcome {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.tried++
	switch {
	case x.answer != nil:
		return x.answer(r)
	case x.wrong:
		return replied(wrongType)
	case len(x.elements) == 0:
		return replied(nullArray)
	}
	first := x.elements[0]
	x.elements = x.elements[1:]
	return replied("+" + first)
}

const wrongType = "-WRONGTYPE Operation against a key holding the wrong kind of value"

// fakeChanges announces changes as a redlock.Subscriber does.
type fakeChanges struct {
	changed func(key []byte)

	mu      sync.Mutex
	tracked map[string]bool
	asked   []string
}

func (c *fakeChanges) Track(_ context.Context, keys ...string) { c.ask(true, "+key ", keys) }
func (c *fakeChanges) Untrack(keys ...string)                  { c.ask(false, "-key ", keys) }

func (c *fakeChanges) ask(tracked bool, what string, keys []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		c.tracked[key] = tracked
	}
	c.asked = append(c.asked, what+strings.Join(keys, " "))
}

// requests returns all requests so far, in order.
func (c *fakeChanges) requests() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.asked)
}

// change announces that a key has changed on the masters. "" is an unknown key.
func (c *fakeChanges) change(key string) {
	c.mu.Lock()
	tracked := c.tracked[key]
	c.mu.Unlock()
	switch {
	case key == "":
		c.changed(nil)
	case tracked:
		c.changed([]byte(key))
	}
}

// push adds elements without announcing them. change announces them.
func (x *fakeList) push(elements ...string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.elements = append(x.elements, elements...)
}

func (x *fakeList) tries() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.tried
}

// block begins a command and returns when it waits or has its reply.
func (x *fakeList) block(ctx context.Context, line string) *proxytest.Pending {
	return proxytest.Send(func() string { return replyOf(x.plane.runBlocking(ctx, request(line))) })
}

func TestBlockedCommandIsWokenByAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFakeList()
		b := x.block(t.Context(), "BLPOP other k 0")
		if x.tries() != 2 || fmt.Sprint(x.requests()) != "[+key other k]" {
			t.Errorf("%d tries, want the first and one when changes are heard; %q", x.tries(), x.requests())
		}
		time.Sleep(300 * time.Millisecond)
		x.push("a")
		x.change("k")
		b.Want(t, "+a", 300*time.Millisecond)
		if x.tries() != 3 {
			t.Errorf("%d tries, want one more", x.tries())
		}
		if fmt.Sprint(x.requests()) != "[+key other k -key other -key k]" {
			t.Errorf("left behind: %q", x.requests())
		}
	})
}

// What is there already is taken by one try, and nothing is tracked.
func TestACommandThatFindsSomethingTracksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFakeList()
		x.push("a")
		x.block(t.Context(), "BLPOP k 0").Want(t, "+a", 0)
		if x.tries() != 1 || len(x.requests()) > 0 {
			t.Errorf("%d tries, %q", x.tries(), x.requests())
		}
	})
}

func TestAChangeDuringATry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFakeList()
		tries := 0
		x.answer = func(redlock.RunRequest) redlock.Outcome {
			switch tries++; tries {
			case 1:
				return replied(nullArray)
			case 2: // what this try sees is older than the change
				x.change("k")
				return replied(nullArray)
			}
			return replied("+a")
		}
		x.block(t.Context(), "BLPOP k 0").Want(t, "+a", 0)
	})
}

// Each try that puts a stray element back makes a change, which calls for the next try.
// That must not go on for ever.
func TestBlockedCommandScrapsStrays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFakeList()
		announced := false
		x.answer = func(r redlock.RunRequest) redlock.Outcome {
			if !r.Scrap && !announced {
				announced = true
				time.AfterFunc(15*time.Millisecond, func() {
					x.mu.Lock()
					announced = false
					x.mu.Unlock()
					x.change("k")
				})
			}
			return replied(nullArray)
		}
		b := x.block(t.Context(), "BLPOP k 2")
		time.Sleep(600 * time.Millisecond)
		b.WantWaiting(t)
		if n := x.tries(); n != 1+strays {
			t.Errorf("%d tries, want the first and %d in quick succession", n, strays)
		}
		time.Sleep(1400 * time.Millisecond)
		b.Want(t, nullArray, 2*time.Second)
	})
}

func TestBlockedCommandWithoutAnyChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFakeList()
		b := x.block(t.Context(), "BLPOP k 2.5")
		b.WantWaiting(t)
		time.Sleep(2500 * time.Millisecond)
		b.Want(t, nullArray, 2500*time.Millisecond)
		if n := x.tries(); n < 5 || n > 6 {
			t.Errorf("%d tries in 2.5 s, want two at first, the last and one a second", n)
		}
		x.push("missed")
		b = x.block(t.Context(), "BLPOP k 0")
		b.Want(t, "+missed", 0)
		b = x.block(t.Context(), "BLPOP k 0")
		x.push("lost")
		time.Sleep(time.Second)
		if reply, _ := b.Now(); reply != "+lost" {
			t.Error("a change that nobody told of is not found")
		}
	})
}

func TestOneOfManyIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFakeList()
		var line []*proxytest.Pending
		for range 50 {
			line = append(line, x.block(t.Context(), "BLPOP k 0"))
		}
		before := x.tries()
		x.push("a")
		x.change("k")
		line[0].Want(t, "+a", 0)
		if n := x.tries() - before; n != 2 {
			t.Errorf("%d tries for one element, want the first's and its successor's", n)
		}
		before = x.tries()
		x.push("b", "c", "d")
		x.change("k")
		for i, want := range []string{"+b", "+c", "+d"} {
			line[i+1].Want(t, want, 0)
		}
		if n := x.tries() - before; n != 4 {
			t.Errorf("%d tries for three elements", n)
		}
		before = x.tries()
		x.change("") // any key may have changed
		x.change("other")
		if synctest.Wait(); x.tries() != before+1 {
			t.Errorf("%d tries", x.tries()-before)
		}
		for i := range 46 {
			x.push(fmt.Sprint(i))
		}
		x.change("k")
		for i := range 46 {
			line[i+4].Want(t, fmt.Sprint("+", i), 0)
		}
	})
}

func TestWakeUpIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFakeList()
		gone, cancel := context.WithCancel(t.Context())
		first := x.block(gone, "BLPOP k 0")
		second := x.block(t.Context(), "BRPOP other k 0")
		x.push("a")
		go cancel()
		x.change("k") // as it goes it is woken
		one, _ := first.Now()
		other, _ := second.Now()
		if one+other != "+a" && one+other != nullArray+"+a" {
			t.Errorf("%q and %q; one of them must have got it", one, other)
		}
	})
}

func TestLinesThatAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFakeList()
		moves := x.block(t.Context(), "BLMOVE source k LEFT RIGHT 0")
		members := x.block(t.Context(), "BZPOPMIN k 0")
		r := request("BLPOP k 0")
		r.DB = 3
		go x.plane.runBlocking(t.Context(), r)
		synctest.Wait()
		before := x.tries()
		x.change("k") // in any database, and of any type
		if synctest.Wait(); x.tries() != before+2 {
			t.Errorf("%d tries, want all but BLMOVE's, which only writes to k", x.tries()-before)
		}
		x.push("a", "b")
		x.change("k")
		synctest.Wait()
		x.push("e")
		x.change("source")
		moves.Want(t, "+e", 0)
		if reply, _ := members.Now(); reply == "" {
			t.Error("BZPOPMIN is not woken")
		}
	})
}

func TestKeyOfAnotherTypeLeavesWaitersWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFakeList()
		b := x.block(t.Context(), "BLPOP k 1")
		x.mu.Lock()
		x.wrong = true
		x.mu.Unlock()
		x.change("k")
		x.block(t.Context(), "BLPOP k 1").Want(t, wrongType, 0)
		b.WantWaiting(t)
		time.Sleep(time.Second)
		b.Want(t, nullArray, time.Second)
	})
}

func TestBlockedCommandPollsWithoutTracking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFakeList()
		x.available.Store(false)
		b := x.block(t.Context(), "BLPOP k 0")
		if len(x.requests()) != 0 {
			t.Errorf("asked for %q", x.requests())
		}
		x.push("a")
		time.Sleep(100 * time.Millisecond)
		if reply, _ := b.Now(); reply != "+a" {
			t.Errorf("%q, want the element that nobody told of", reply)
		}
		x.available.Store(true)
		b = x.block(t.Context(), "BLPOP k 0")
		x.available.Store(false) // the masters have become older ones
		x.change("k")
		x.push("b")
		time.Sleep(2 * time.Second)
		if reply, _ := b.Now(); reply != "+b" {
			t.Errorf("%q, want the element", reply)
		}
	})
}

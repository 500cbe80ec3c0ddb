package upstream

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// A client that does not read delays the others until the watch ends it.
func TestSlowClientIsEnded(t *testing.T) {
	r := newRig(t)
	slow, other := r.member(0), r.member(0)
	server := <-r.servers
	slow.sends("slow", 1)
	other.sends("other", 1)
	hears(t, server, "slowother")
	const size = 64 << 20 // more than all buffers of the kernel
	go func() {
		say(server, fmt.Sprintf("$%d\r\n", size))
		piece := bytes.Repeat([]byte("x"), 1<<20)
		for range size / len(piece) {
			_, _ = server.Write(piece)
		}
		say(server, "\r\n+other\r\n")
	}()
	hears(t, other.client, "+other\r\n")
	if slow.owner.unread.Load() != 1 || !slow.Failed() || other.owner.unread.Load() != 0 {
		t.Errorf("slow: %d times, failed %v; other: %d times", slow.owner.unread.Load(), slow.Failed(), other.owner.unread.Load())
	}
}

// While nobody waits behind it, a client may take its time. What waits for it is bounded.
func TestSlowClientAloneIsKept(t *testing.T) {
	r := newRig(t)
	r.watched = true // the test looks itself
	slow := r.member(0)
	server := <-r.servers
	slow.sends("slow", 1)
	const size = 32 << 20
	go say(server, fmt.Sprintf("$%d\r\n%s\r\n", size, strings.Repeat("x", size)))
	c := slow.conn.Load()
	eventually(t, "reading has stopped for the client", func() bool { return r.stops(c) })
	r.look(func() {
		for range 3 * looksToEnd {
			c.countDelay()
		}
		if waiting := slow.Member.client.to.Waiting(); waiting > 128<<10 {
			t.Errorf("%d bytes wait for the client", waiting)
		}
	})
	if slow.owner.unread.Load() > 0 || !slow.slow.Load() {
		t.Errorf("it is ended %d times; it is slow: %v", slow.owner.unread.Load(), slow.slow.Load())
	}
	hears(t, slow.client, fmt.Sprintf("$%d\r\n%s\r\n", size, strings.Repeat("x", size)))
}

// quiet makes members that are told nothing.
func quiet(n int) (members []*Member) {
	for range n {
		members = append(members, &Member{Options: Options{Owner: nobody{}}})
	}
	return members
}

// However much a client reads, it is not ended while it reads fast.
func TestFastReaderIsKept(t *testing.T) {
	c, members := &Conn{}, quiet(2)
	fast, other := members[0], members[1]
	c.full, c.turn = []*Member{fast}, turn{of: other}
	for range 3 * looksToEnd {
		c.taken += readsFast
		if c.countDelay(); fast.gone.Load() {
			t.Fatal("it is ended")
		}
	}
	for range looksToEnd - 1 {
		c.taken += readsFast - 1
		if c.countDelay(); fast.gone.Load() {
			t.Fatal("it is ended too early")
		}
	}
	if c.countDelay(); !fast.gone.Load() || other.gone.Load() {
		t.Error("it is not ended although it reads slowly")
	}
}

// looksToEnd is the number of looks after which clients that delay others are ended.
const looksToEnd = int(mostDelay / watchEvery)

// However many clients do not read, others wait for them a second, not a second for each: the
// delays add up, and at their end all clients that are full are ended together. After it the next
// are ended at once, until nobody has delayed anybody for a while.
func TestSlowClientsAreEndedTogether(t *testing.T) {
	c, other := &Conn{}, quiet(1)[0]
	c.queue.add(other, &Expectation{Kind: Switch})
	// stop stops reading for so many clients until the watch has looked so often. It returns how many
	// of them are ended.
	stop := func(looks, clients int) (ended int) {
		c.full = quiet(clients)
		count := func() (n int) {
			for _, m := range c.full {
				if m.gone.Load() {
					n++
				}
			}
			return n
		}
		c.endSlow() // as after each read
		for look := 1; look <= looks && count() == 0; look++ {
			if c.countDelay(); count() > 0 && look < looks {
				t.Fatal("they are ended too early")
			}
		}
		ended, c.full = count(), nil
		return ended
	}
	if stop(looksToEnd/2, 1) > 0 {
		t.Fatal("the first is ended too early")
	}
	if ended := stop(looksToEnd-looksToEnd/2, 2); ended != 2 {
		t.Errorf("after the second in which others waited %d of two are ended", ended)
	}
	for range 2 {
		if stop(0, 1) != 1 {
			t.Error("the next is not ended at once")
		}
	}
	for range 2 {
		c.countDelay()
	}
	if stop(1, 1) != 1 {
		t.Error("others wait once more for longer than a look")
	}
	for range (looksToEnd + 1) * delayEnds {
		c.countDelay()
	}
	if stop(looksToEnd, 1) != 1 {
		t.Error("it is not ended")
	}
	c.full = append(quiet(1), other)
	if c.endSlow(); other.gone.Load() {
		t.Error("clients are ended although nobody else waits")
	}
}

package upstream

import (
	"testing"
	"time"
)

// The reader has begun with the reply, so no turn waits, and yet the connection is in use.
func TestAConnectionThatOwesTheRestOfAReplyIsNotIdle(t *testing.T) {
	r := newRig(t)
	a := r.member(0)
	server := <-r.servers
	c := a.conn.Load()
	idle := func() (is bool) {
		r.look(func() { is = c.isIdle() })
		return is
	}
	if !idle() {
		t.Error("a new connection is not idle")
	}
	a.sends("a", 2)
	say(server, "+1\r\n$3\r\nab")
	hears(t, a.client, "+1\r\n$3\r\nab")
	if idle() {
		t.Error("it passes for idle")
	}
	say(server, "c\r\n")
	eventually(t, "it is idle", idle)
}

// A server that has become a replica is left. Replies that are still missing come from it.
func TestReadOnlyServerIsLeft(t *testing.T) {
	r := newRig(t)
	r.watched = true // the test looks itself
	silent := r.member(1)
	<-r.servers
	a, b := r.member(0), r.member(0)
	replica := <-r.servers
	c := a.conn.Load()
	refuse := func() {
		a.sends("write", 1)
		say(replica, "-READONLY You can't write against a read only replica.\r\n")
		hears(t, a.client, "-READONLY You can't write against a read only replica.\r\n")
		a.waits()
	}
	leftAt := func(at time.Time) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.left = at
	}
	leftAt(time.Now().Add(time.Hour))
	if refuse(); !a.isOn() || !silent.isOn() {
		t.Error("a server is left a second time at once, so each command would dial")
	}
	leftAt(time.Time{})
	a.sends("get", 1)
	say(replica, "$9\r\n-READONLY\r\n")
	hears(t, a.client, "$9\r\n-READONLY\r\n")
	if a.waits(); !a.isOn() {
		t.Error("a value makes a client leave its server")
	}
	b.sends("slow", 1)
	say(replica, "+slow\r\n")
	if refuse(); a.isOn() || silent.isOn() {
		t.Fatal("the replica is still used")
	}
	b.sends("late", 1) // b had chosen the connection before
	a.join(r)
	master := <-r.servers
	a.sends("write", 1)
	say(master, "+OK\r\n")
	hears(t, a.client, "+OK\r\n")
	for range 2 * staleLooks {
		r.look(func() { c.look(time.Now()) })
	}
	leftAt(time.Time{})
	say(replica, "-READONLY late\r\n")
	hears(t, b.client, "+slow\r\n-READONLY late\r\n")
	if !a.isOn() {
		t.Error("a late reply of the replica makes members leave the master")
	}
	if open, _ := r.Counts(); open != 3 {
		t.Errorf("%d connections", open)
	}
	b.waits()
	r.look(func() { c.look(time.Now()) })
	eventually(t, "the connection to the replica is closed", c.over.Load)
}

// A connection that nobody uses is closed, but not at once: a session may have just chosen it.
func TestUnusedConnectionIsClosed(t *testing.T) {
	r := newRig(t)
	r.watched = true // the test looks itself
	a := r.member(0)
	server := <-r.servers
	c := a.conn.Load()
	a.sends("a", 1)
	for range 2 * staleLooks {
		r.look(func() { c.look(time.Now().Add(2 * unusedAfter)) })
	}
	if !a.isOn() {
		t.Error("a connection that owes a reply is left")
	}
	say(server, "+a\r\n")
	hears(t, a.client, "+a\r\n")
	a.waits()
	r.look(func() { c.look(time.Now()) })
	if !a.isOn() {
		t.Error("a connection that was just used is left")
	}
	r.look(func() { c.look(time.Now().Add(2 * unusedAfter)) })
	if a.isOn() {
		t.Error("it may still be chosen")
	}
	a.sends("late", 1)
	say(server, "+late\r\n")
	hears(t, a.client, "+late\r\n")
	a.waits()
	if c.over.Load() {
		t.Error("it was closed at once")
	}
	for range staleLooks {
		r.look(func() { c.look(time.Now()) })
	}
	eventually(t, "it is closed", c.over.Load)
}

// A server that remains a replica is left again after a while, and one that becomes a replica later at once.
func TestHowOftenAReplicaIsLeft(t *testing.T) {
	p := &Pool{}
	for since, leaves := range map[time.Duration]bool{time.Hour: true, leaveEvery / 2: false, leaveEvery: true} {
		c := &Conn{server: Server{Name: "a"}}
		other := &Conn{server: Server{Name: "b"}}
		p.all, p.left = []*Conn{c, other}, time.Now().Add(-since)
		p.leave(c.server)
		if c.stale.Load() != leaves || other.stale.Load() {
			t.Errorf("%v after the last one: left %v, and another server %v", since, c.stale.Load(), other.stale.Load())
		}
	}
}

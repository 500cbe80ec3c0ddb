package upstream

import (
	"testing"
	"time"

	"redlock-proxy/proxy/wire"
)

// A client that has gone costs the others nothing, and its replies go nowhere.
func TestMemberThatLeaves(t *testing.T) {
	r := newRig(t)
	gone, other := r.member(0), r.member(0)
	server := <-r.servers
	gone.sends("gone", 2)
	other.sends("other", 1)
	hears(t, server, "goneother")
	gone.owner.client.Close()
	gone.Abandon()
	if gone.waits() {
		t.Error("a reply that did not come is said to have come")
	}
	say(server, "+1\r\n+2\r\n+other\r\n")
	hears(t, other.client, "+other\r\n")
}

// A client that sends no more gets what comes soon. It does not wait for a silent server.
func TestMemberThatSendsNoMore(t *testing.T) {
	r := newRig(t)
	patient, leaves := r.member(0), r.member(0)
	server := <-r.servers
	leaves.sends("a", 2)
	hears(t, server, "a")
	eventually(t, "all is sent", func() bool { return leaves.conn.Load().sock.Waiting() == 0 })
	passes := func(silence time.Duration) {
		r.clock.Advance(r.clock.Now() + int64(silence))
		patient.Look()
		leaves.Look()
	}
	passes(drainSilence * 2)
	leaves.Drain()
	passes(0)
	passes(drainSilence * 3 / 4)
	say(server, "+a\r\n")
	hears(t, leaves.client, "+a\r\n")
	passes(drainSilence * 3 / 4)
	if leaves.Failed() {
		t.Error("the server is given up although it replies")
	}
	passes(drainSilence / 2)
	if leaves.waits() {
		t.Error("a reply that did not come is said to have come")
	}
	patient.sends("b", 1)
	say(server, "+a\r\n+b\r\n")
	hears(t, patient.client, "+b\r\n")
	if !patient.waits() {
		t.Error("a reply that came is said to be missing")
	}
}

func TestClosedPool(t *testing.T) {
	r := newRig(t)
	a := r.member(0)
	<-r.servers
	a.sends("a", 1)
	r.Close()
	if a.waits() {
		t.Error("a missing reply is said to have come")
	}
	if _, failure := a.Join(Server{Name: "a"}, wire.RESP2, r.dial); failure == nil {
		t.Error("a closed pool dials")
	}
}

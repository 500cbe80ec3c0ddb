package upstream

import (
	"testing"
	"time"

	"redlock-proxy/proxy/wire"
)

// A client that sends no more gets what comes soon. It does not wait for a silent server, though others send it more.
func TestMemberThatSendsNoMore(t *testing.T) {
	r := newRig(t)
	patient, leaves := r.member(0), r.member(0)
	server := <-r.servers
	leaves.sends("a", 3)
	hears(t, server, "a")
	after := func(silence time.Duration) (gaveUp bool) {
		patient.Look(time.Now().Add(silence))
		leaves.Look(time.Now().Add(silence))
		return leaves.Failed()
	}
	endedAgo := func(d time.Duration) { leaves.drains.Add(-int64(d)) }
	if after(2 * drainSilence) {
		t.Error("the server is given up although the client may send more")
	}
	leaves.Drain()
	if after(drainSilence / 2) {
		t.Error("the server is given up at once")
	}
	endedAgo(2 * drainSilence)
	say(server, "+a\r\n")
	hears(t, leaves.client, "+a\r\n")
	if after(drainSilence / 2) {
		t.Error("the server is given up although it replies")
	}
	leaves.sends("b", 1)
	if ended := time.Since(began) - time.Duration(leaves.drains.Load()); ended > drainSilence {
		t.Errorf("the server has %v less for a command that was read before the client's end", ended)
	}
	patient.sends("c", 1)
	hears(t, server, "bc")
	endedAgo(2 * drainSilence)
	if !after(2*drainSilence) || leaves.waits() {
		t.Error("a silent server is not given up, or a reply that did not come is said to have come")
	}
	say(server, "+a\r\n+a\r\n+b\r\n+c\r\n")
	hears(t, patient.client, "+c\r\n")
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

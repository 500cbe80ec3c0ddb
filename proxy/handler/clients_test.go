package handler

import (
	"testing"
	"time"

	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/pubsub"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
)

// A line of CLIENT LIST has Redis's fields and no others.
func TestLine(t *testing.T) {
	blpop := route.Builtin().Lookup(proxytest.Words("BLPOP k 0"))
	for name, row := range map[string]struct {
		status clientStatus
		want   string
	}{
		"it has sent nothing": {
			clientStatus{id: 1, address: "a:1", local: "l:2", waits: waitsForNobody, published: published{User: "default", Queued: -1}},
			"id=1 addr=a:1 laddr=l:2 fd=-1 name= age=0 idle=0 flags=N db=0 sub=0 psub=0 ssub=0 multi=-1 qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 " +
				"rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=0 events=r cmd=NULL user=default redir=-1 resp=2 lib-name= lib-ver=\n",
		},
		"it waits for a lock": {
			clientStatus{
				id: 2, address: "a:1", local: "l:2", age: 90 * time.Second, idle: 1900 * time.Millisecond, waits: waitsForLocks, command: blpop,
				subscriptions: [3]int{1, 2, 3},
				published: published{
					ClientSettings: upstream.ClientSettings{Name: "worker", DB: 4, Version: wire.RESP3, LibName: "redis-py", LibVersion: "5.2.1", NoEvict: true, NoTouch: true},
					User:           "alice",
					Queued:         2, QueuedBytes: 77, Monitors: true, Tracks: true, Broadcast: true, Redirect: 9,
				},
			},
			"id=2 addr=a:1 laddr=l:2 fd=-1 name=worker age=90 idle=1 flags=OPxbtBeT db=4 sub=1 psub=2 ssub=3 multi=2 qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=77 " +
				"rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=0 events=r cmd=blpop user=alice redir=9 resp=3 lib-name=redis-py lib-ver=5.2.1\n",
		},
	} {
		if got := string(row.status.line(nil)); got != row.want {
			t.Errorf("%s:\ngot  %q\nwant %q", name, got, row.want)
		}
	}
}

// TRACKINGINFO shows the proxy's id of the client that gets the messages.
func TestShowRedirect(t *testing.T) {
	const before, after = "*6\r\n$5\r\nflags\r\n*1\r\n$2\r\non\r\n$8\r\nredirect\r\n:", "\r\n$8\r\nprefixes\r\n*0\r\n"
	for name, row := range map[string]struct {
		redirect    int64
		reply, want string
	}{
		"the upstream's id is replaced": {7, before + "123" + after, before + "7" + after},
		"it redirects to nobody":        {0, before + "0" + after, before + "0" + after},
		"an error":                      {7, "-NOPERM no\r\n", "-NOPERM no\r\n"},
		"a reply that is cut":           {7, before, before},
		"no reply":                      {7, "", ""},
	} {
		h := &Handler{tracking: pubsub.Tracking{Redirect: row.redirect}}
		if got := string(h.showTracking([]byte(row.reply))); got != row.want {
			t.Errorf("%s: %q, not %q", name, got, row.want)
		}
	}
}

package handler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
)

// CLIENT LIST shows one type, or these ids in this order. Everything else is refused as by Redis.
func TestParseList(t *testing.T) {
	for line, want := range map[string]string{
		"CLIENT LIST":                   "any []",
		"CLIENT LIST TYPE normal":       "normal []",
		"CLIENT LIST type PUBSUB":       "pubsub []",
		"CLIENT LIST TYPE slave":        "replica []",
		"CLIENT LIST TYPE replica":      "replica []",
		"CLIENT LIST TYPE master":       "master []",
		"CLIENT LIST ID 7":              "any [7]",
		"CLIENT LIST id 7 -1 7 0":       "any [7 -1 7 0]",
		"CLIENT LIST ID":                string(wire.ErrSyntax),
		"CLIENT LIST TYPE":              string(wire.ErrSyntax),
		"CLIENT LIST TYPE normal x":     string(wire.ErrSyntax),
		"CLIENT LIST x":                 string(wire.ErrSyntax),
		"CLIENT LIST ID 7 x":            string(errClientID),
		"CLIENT LIST ID 07":             string(errClientID),
		"CLIENT LIST ID 9" + noClientID: string(errClientID),
		"CLIENT LIST TYPE a\rb":         "-ERR Unknown client type 'a b'\r\n",
		"CLIENT LIST TYPE nor\x00mal":   "-ERR Unknown client type 'nor'\r\n",
	} {
		f, refusal := parseList(proxytest.Words(line))
		got := string(refusal)
		if refusal == "" {
			got = fmt.Sprintf("%s %v", [...]string{"any", "normal", "replica", "pubsub", "master"}[f.kind], f.ids)
		}
		if got != want {
			t.Errorf("%q: %q, not %q", line, got, want)
		}
	}
}

// The filter says which of these clients end: (a) and (b) are clients, and b asks.
func TestKillFilters(t *testing.T) {
	a := &clientStatus{id: 7, address: "10.0.0.7:5000", local: "10.0.0.1:6380", age: time.Minute, published: published{User: "alice"}}
	b := &clientStatus{id: 8, address: "10.0.0.8:5000", local: "10.0.0.1:6380", age: time.Hour, published: published{User: "bob"}, subscriptions: [3]int{1, 0, 0}}
	for line, want := range map[string]string{
		"CLIENT KILL 10.0.0.7:5000":             "a",
		"CLIENT KILL 10.0.0.8:5000":             "b", // the old form ends even the client that asks
		"CLIENT KILL ADDR 10.0.0.8:5000":        "",
		"CLIENT KILL ID 7":                      "a",
		"CLIENT KILL ID 8":                      "",
		"CLIENT KILL ID 8 SKIPME no":            "b",
		"CLIENT KILL SKIPME no SKIPME yes":      "a",
		"CLIENT KILL LADDR 10.0.0.1:6380":       "a",
		"CLIENT KILL TYPE normal SKIPME no":     "a",
		"CLIENT KILL TYPE pubsub SKIPME no":     "b",
		"CLIENT KILL TYPE master SKIPME no":     "",
		"CLIENT KILL USER alice":                "a",
		"CLIENT KILL USER alice ID 8 SKIPME no": "",
		"CLIENT KILL MAXAGE 61 SKIPME no":       "b",
		"CLIENT KILL MAXAGE 60 SKIPME no":       "a b",
		"CLIENT KILL MAXAGE " + noClientID:      "",
		"CLIENT KILL ID":                        "", // the old form: an address like that
		"CLIENT KILL ID 7 TYPE":                 string(wire.ErrSyntax),
		"CLIENT KILL ID 0":                      string(errKillID),
		"CLIENT KILL ID x":                      string(errKillID),
		"CLIENT KILL MAXAGE 0":                  string(errMaxAgeLow),
		"CLIENT KILL MAXAGE x":                  string(errMaxAge),
		"CLIENT KILL SKIPME maybe":              string(wire.ErrSyntax),
		"CLIENT KILL FOO bar":                   string(wire.ErrSyntax),
		"CLIENT KILL TYPE foo":                  "-ERR Unknown client type 'foo'\r\n",
	} {
		f, refusal := parseKill(proxytest.Words(line))
		got := string(refusal)
		if refusal == "" {
			var ended []string
			if f.matches(a, false) {
				ended = append(ended, "a")
			}
			if f.matches(b, true) {
				ended = append(ended, "b")
			}
			got = strings.Join(ended, " ")
		}
		if got != want {
			t.Errorf("%q: %q, not %q", line, got, want)
		}
	}
}

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

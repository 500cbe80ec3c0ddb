package transparency

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/integration/corpus"
	"redlock-proxy/integration/rig"
)

// TestEveryKeyedCommandOnTheUpstream: the upstream answers every command without a lock
// key, byte for byte. None of this looks like a lock that lacks a rule.
func TestEveryKeyedCommandOnTheUpstream(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{LogLevel: "warn"})
	plain := rig.StartServer(t, "plain")
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			d := corpus.Differential{Plain: plain, Addr: c.Proxy.Addr(), Protocol: protocol}
			var scenarios []corpus.Scenario
			for _, s := range corpus.Examples(t, plain) {
				if !s.Declined() {
					scenarios = append(scenarios, s.OnUpstream())
				}
			}
			d.Run(t, scenarios)
		})
	}
	if found, err := rig.Dial(t, c.Proxy.Addr(), 2).Do("REDLOCK", "UNRULED"); err != nil || string(found) != "*0\r\n" {
		t.Errorf("it looks like locks: %q, %v", found, err)
	}
	for _, m := range c.Masters {
		reply, err := rig.Dial(t, m.Addr(), 2).Do("KEYS", "plain:*")
		if err != nil || string(reply) != "*0\r\n" {
			t.Errorf("%s: %q %v, want no key of the upstream's", m.Name, reply, err)
		}
	}
}

// notCompared are commands without keys that the test does not send, with the reason.
var notCompared = map[string]string{
	"shutdown": "ends the server", "failover": "changes the server's role", "replicaof": "changes the server's role",
	"slaveof": "changes the server's role", "debug": "can end the server", "cluster|reset": "changes the server",
	"psync": "refused by the proxy", "sync": "refused by the proxy", "replconf": "refused by the proxy", "script|debug": "refused by the proxy",
	"monitor": "shows the other client's commands", "subscribe": "has replies of its own; see the session tests",
	"psubscribe": "as subscribe", "ssubscribe": "as subscribe", "unsubscribe": "as subscribe", "punsubscribe": "as subscribe",
	"sunsubscribe": "as subscribe", "client|reply": "may have no reply", "quit": "ends the connection",
	"client|pause": "stops the server", "client|kill": "ends connections", "acl|save": "writes a file", "acl|load": "reads a file",
	"config|set": "changes the server", "config|rewrite": "writes a file", "config|resetstat": "races with CONFIG GET",
	"flushall": "would wipe the other tests' keys", "flushdb": "as flushall", "swapdb": "as flushall",
	"save": "may race with BGSAVE", "bgsave": "may race with SAVE", "bgrewriteaof": "as BGSAVE",
	"module|load": "needs a module", "module|loadex": "needs a module", "script|kill": "also asks the masters; see the session tests",
	"function|restore": "the payload differs by server", "wait": "waits for replicas",
	"reset": "see the session tests", "exec": "see the session tests",
}

// differsByServer are commands whose successful reply depends on the server or on the
// moment. Only the type of the reply is compared.
var differsByServer = map[string]bool{
	"info": true, "time": true, "lastsave": true, "role": true, "hello": true, "dbsize": true, "randomkey": true, "lolwut": true,
	"client|id": true, "client|list": true, "client|info": true, "client|getredir": true, "memory|stats": true, "memory|doctor": true,
	"memory|malloc-stats": true, "slowlog|get": true, "slowlog|len": true, "latency|doctor": true, "latency|latest": true, "latency|histogram": true,
	"config|get": true, "command": true, "command|list": true, "command|info": true, "command|docs": true, "acl|log": true,
	"acl|genpass": true, "keys": true, "scan": true, "pubsub|channels": true, "function|stats": true, "memory|purge": true,
	"client|trackinginfo": true,
}

// TestEveryCommandWithoutKeys sends each command with no, one, two and three arguments.
func TestEveryCommandWithoutKeys(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{LogLevel: "warn"})
	plain := rig.StartServer(t, "plain")
	names := commandsWithoutKeys(t, plain)
	if len(names) < 100 {
		t.Fatalf("only %d commands without keys were found", len(names))
	}
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			sent := 0
			for _, name := range names {
				if notCompared[name] != "" {
					continue
				}
				for _, more := range [][]string{nil, {"1"}, {"nonsense", "1"}, {"a", "b", "c"}} {
					args := append(strings.Split(name, "|"), more...)
					ours, theirs := rig.Dial(t, plain.Addr(), protocol), rig.Dial(t, c.Proxy.Addr(), protocol)
					want, err := ours.Do(args...)
					if err != nil {
						t.Fatalf("%q: plain Redis: %v", args, err)
					}
					got, err := theirs.Do(args...)
					if err != nil {
						t.Errorf("%q: the proxy: %v after %q, plain Redis answers %q", args, err, got, want)
						continue
					}
					sent++
					same := bytes.Equal(want, got)
					if differsByServer[name] && want[0] != '-' {
						same = want[0] == got[0]
					}
					if !same {
						t.Errorf("%q:\n   plain: %.300q\n proxied: %.300q", args, want, got)
					}
					ours.Conn.Close()
					theirs.Conn.Close()
				}
			}
			t.Logf("%d commands, sent in %d ways", len(names), sent)
		})
	}
}

// commandsWithoutKeys lists the server's commands without keys; subcommands as "name|sub".
func commandsWithoutKeys(t *testing.T, r *rig.Server) []string {
	var names []string
	infos, err := r.Direct.Do(t.Context(), "COMMAND").Slice()
	if err != nil {
		t.Fatal(err)
	}
	var add func(info []any)
	add = func(info []any) {
		if subcommands, _ := info[9].([]any); len(subcommands) > 0 {
			for _, sub := range subcommands {
				add(sub.([]any))
			}
			return
		}
		if specs, _ := info[8].([]any); len(specs) == 0 {
			names = append(names, info[0].(string))
		}
	}
	for _, info := range infos {
		add(info.([]any))
	}
	slices.Sort(names)
	return names
}

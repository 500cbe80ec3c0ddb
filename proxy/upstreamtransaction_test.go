package proxy

import (
	"bufio"
	"strings"
	"testing"
	"time"

	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

// A transaction of commands without keys is held until EXEC. EXEC names the command that
// the upstream refuses by then, as on Redis itself.
func TestExecNamesWhatTheUpstreamRefusesSince(t *testing.T) {
	redis := proxytest.StartRedis(t)
	client, direct := startTestProxy(t, redis).dial(t), dialTest(t, "unix", redis.Socket)
	client.ask("GET a\r\n", "$-1\r\n")
	for _, c := range []*testClient{client, direct} {
		c.ask("MULTI\r\nPING\r\n", "+OK\r\n+QUEUED\r\n")
	}
	redis.Ask(t, "CONFIG SET replica-serve-stale-data no")
	redis.Ask(t, "REPLICAOF 127.0.0.1 1")
	direct.send("EXEC\r\n")
	want := direct.values(1)
	if !strings.HasPrefix(want, wire.ErrExecAbortOf+"MASTERDOWN ") {
		t.Fatalf("Redis says %q", want)
	}
	client.ask("EXEC\r\n", want)
	redis.Ask(t, "REPLICAOF NO ONE")
	client.ask("MULTI\r\nPING\r\nSELECT 3\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+PONG\r\n+OK\r\n")
	client.ask("SET there 1\r\nSELECT 3\r\nGET there\r\n", "+OK\r\n+OK\r\n$1\r\n1\r\n")
}

// In RESP3 the elements of EXEC's reply may be pushes: one, several or none for a command. The
// reply's end cannot be told, and the client must get its other replies all the same.
func TestRepliesBehindSubscriptionsInATransaction(t *testing.T) {
	redis := proxytest.StartRedis(t)
	for _, name := range []string{"UNSUBSCRIBE", "SUBSCRIBE a", "PSUBSCRIBE a* b*"} {
		client, direct := startTestProxy(t, redis).dial(t), dialTest(t, "unix", redis.Socket)
		client.ask("HELLO 3\r\n", helloText(3))
		direct.send("HELLO 3\r\n")
		direct.values(1)
		for _, c := range []*testClient{client, direct} {
			c.ask("MULTI\r\n"+name+"\r\nPING\r\n", "+OK\r\n+QUEUED\r\n+QUEUED\r\n")
			c.send("EXEC\r\n")
		}
		want := direct.upTo("+PONG\r\n")
		if got := client.upTo("+PONG\r\n"); got != want {
			t.Errorf("%s: %q, Redis answers %q", name, got, want)
		}
		client.ask("GET lock:a\r\nPING\r\n", string(wire.ErrLockInPipe)+"+PONG\r\n")
		client.halfClose()
		client.expectEnd("")
	}
}

func TestMonitorShowsTheClientsOwnSpelling(t *testing.T) {
	redis := proxytest.StartRedis(t)
	monitor := dialTest(t, "unix", redis.Socket)
	monitor.ask("MONITOR\r\n", "+OK\r\n")
	_ = monitor.SetReadDeadline(time.Now().Add(patience))
	lines := bufio.NewReader(monitor)
	client := startTestProxy(t, redis).dial(t)
	for _, end := range []string{"gEt a\r\neXec\r\n", "pInG\r\neXec\r\n"} {
		client.send("mUltI\r\n" + end)
		seen := ""
		for !strings.Contains(strings.ToLower(seen), `"exec"`) {
			line, err := lines.ReadString('\n')
			if seen += line; err != nil {
				t.Fatalf("%v after %s", err, seen)
			}
		}
		if !strings.Contains(seen, `"mUltI"`) || !strings.Contains(seen, `"eXec"`) {
			t.Errorf("MONITOR shows %s", seen)
		}
	}
}

// A transaction is held here. Invalidations that the upstream sent before one of its
// commands come before the command's reply.
func TestInvalidationsComeBeforeWhatIsHeld(t *testing.T) {
	redis := proxytest.StartRedis(t)
	client, other := startTestProxy(t, redis).dial(t), dialTest(t, "unix", redis.Socket)
	client.ask("HELLO 3\r\n", helloText(3))
	client.ask("CLIENT TRACKING ON\r\n", "+OK\r\n")
	for range 200 {
		client.ask("GET a\r\n", "_\r\n")
		client.ask("MULTI\r\n", "+OK\r\n")
		other.ask("SET a 1\r\nDEL a\r\n", "+OK\r\n:1\r\n")
		client.ask("PING\r\n", invalidated("a")+"+QUEUED\r\n")
		client.ask("DISCARD\r\n", "+OK\r\n")
	}
}

// Valkey 9.2 lets EXEC have conditions on keys. An upstream gets them as they are, and the words
// of one that does not know them reach the client.
func TestConditionsOfExecAreTheUpstreams(t *testing.T) {
	redis := proxytest.StartRedis(t)
	for _, inside := range []string{
		"EXEC NX a\r\n", "PING\r\nEXEC IFEQ a v\r\n", "SET a 1\r\nEXEC XX a NX b\r\n", "GET\r\nEXEC NX a\r\n", "EXEC 1\r\n",
		"SELECT 3\r\nSET a 1\r\nEXEC IFNE a v\r\n",
	} {
		sent := &recorder{}
		client, direct := startTestProxy(t, redis, sent.configure).dial(t), dialTest(t, "unix", redis.Socket)
		commands := "MULTI\r\n" + inside + "EXEC\r\nGET a\r\nWATCH b\r\nMULTI\r\nGET a\r\nEXEC\r\n"
		direct.send(commands)
		client.ask(commands, direct.values(strings.Count(commands, "\r\n")))
		condition := inside[strings.Index(inside, "EXEC"):]
		if got := sent.take(); !strings.Contains(inside, "GET\r\n") && strings.Count(got, respCommand(strings.Fields(condition)...))+strings.Count(got, condition) != 1 {
			t.Errorf("the upstream got %q", got)
		}
	}
}

// An EXEC that has a condition on a lock key ends its transaction, and no command of it runs.
func TestConditionsOfExecAreNotOnLocks(t *testing.T) {
	ok, queued := "+OK\r\n", "+QUEUED\r\n"
	refused := string(wire.ErrExecCondition.Refusing("exec"))
	for _, row := range []struct{ send, want string }{
		{"MULTI\r\nSET a 1\r\nEXEC IFEQ lock:a v\r\n", ok + queued + refused},
		{"MULTI\r\nSET a 1\r\nEXEC NX b IFNE lock:a v\r\n", ok + queued + refused},
		{"MULTI\r\nSET lock:b 1\r\nEXEC NX lock:a\r\n", ok + queued + refused},
		{"MULTI\r\nPING\r\nEXEC XX lock:a\r\n", ok + queued + refused},
		{"MULTI\r\nEXEC NX lock:a\r\n", ok + refused},
		{"MULTI\r\nSET a 1\r\nEXEC lock:a\r\n", ok + queued + refused},
		{"WATCH a\r\nMULTI\r\nSET a 1\r\nEXEC NX lock:a\r\n", ok + ok + queued + refused},
		{"WATCH lock:a\r\nMULTI\r\nSET lock:b 1\r\nEXEC NX lock:a\r\n", ok + ok + queued + refused},
		{"MULTI\r\nSET a 1\r\nEXEC NX " + redlock.MarkerKey + "\r\n", ok + queued + string(wire.ErrReservedKey.Refusing("exec"))},
		{"MULTI\r\nSET lock:b 1\r\nEXEC NX a\r\n", ok + queued + string(wire.ErrCrossLock)},
		{"MULTI\r\nSET lock:b 1\r\nEXEC 1\r\n", ok + queued + string(wire.ErrArity("exec"))},
		{"WATCH lock:a\r\nMULTI\r\nPING\r\nEXEC NX a\r\n", ok + ok + queued + string(wire.ErrCrossLock)},
		{"EXEC NX lock:a\r\n", string(wire.ErrArity("exec"))},
	} {
		redis, sent := proxytest.StartRedis(t), &recorder{}
		client := startTestProxy(t, redis, sent.configure).dial(t)
		client.ask(row.send, row.want)
		// Nothing is left of it: no transaction, no watched key, and nothing was written.
		redis.Ask(t, "SET a changed")
		client.ask("EXEC\r\nMULTI\r\nGET a\r\nEXEC\r\nGET lock:b\r\n", string(wire.ErrExecNoMulti)+ok+queued+"*1\r\n$7\r\nchanged\r\n$-1\r\n")
		if got := strings.ToUpper(sent.take()); strings.Count(got, "EXEC\r\n") != 1 {
			t.Errorf("%q: the upstream got %q", row.send, got)
		}
	}
}

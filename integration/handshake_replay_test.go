package integration

import (
	"fmt"
	"testing"
)

// Some clients cannot be had where the suite runs. Their first bytes are
// known, and are sent here as they send them: a line of what goes out in one
// write, each command held against what plain Redis answers.

// saying is one command of a handshake.
type saying struct {
	args []string
	// like is the rule for the reply, given plain Redis's.
	like func(plain, got []byte) bool
	// alone is the rule while the upstream is down; nil: the same.
	alone func(plain, got []byte) bool
}

func says(args ...string) saying { return saying{args: args, like: exact.equal} }

func (s saying) liked(like func(plain, got []byte) bool) saying {
	s.like = like
	return s
}

// orRefused is for what only the upstream knows: without it there is an
// error, and the connection stays.
func (s saying) orRefused() saying {
	s.alone = func(_, got []byte) bool { return got[0] == '-' }
	return s
}

// tolerant is for what clients send on the off chance: whether it is granted
// does not matter to them.
func tolerant(_, got []byte) bool { return got[0] == '-' || string(got) == "+OK\r\n" }

func setInfo(name, version string) []saying {
	return []saying{
		says("CLIENT", "SETINFO", "lib-name", name).liked(tolerant),
		says("CLIENT", "SETINFO", "lib-ver", version).liked(tolerant),
	}
}

// replayedHandshake is what one connection sends first, a row for each write.
type replayedHandshake struct {
	client string
	writes [][]saying
}

var replayedHandshakes = []replayedHandshake{
	{"StackExchange.Redis 2.8", [][]saying{concat(
		[]saying{says("CLIENT", "SETNAME", "HOST(SE.Redis-v2.8.58)")},
		setInfo("SE.Redis", "2.8.58"), stackExchangeQuestions(), tracer())}},
	{"StackExchange.Redis 2.8, subscriber", [][]saying{
		concat(
			[]saying{says("CLIENT", "SETNAME", "HOST(SE.Redis-v2.8.58)")},
			setInfo("SE.Redis", "2.8.58"),
			[]saying{says("CLIENT", "ID").liked(remaining.equal).orRefused()},
			tracer(),
			[]saying{says("SUBSCRIBE", "__Booksleeve_MasterChanged").orRefused()}),
		// The heartbeat of a subscriber's connection; a subscription that was
		// refused leaves it an ordinary one.
		{{args: []string{"PING"}, like: exact.equal, alone: func(_, got []byte) bool { return string(got) == "+PONG\r\n" }}},
	}},
	{"StackExchange.Redis 3.1", [][]saying{concat(
		[]saying{says("HELLO", "3").liked(remaining.equal), says("CLIENT", "SETNAME", "HOST(SE.Redis-v3.1.31)")},
		setInfo("SE.Redis", "3.1.31"), stackExchangeQuestions(), tracer())}},
	{"redis-client 0.30", [][]saying{{says("HELLO", "3").liked(remaining.equal)}}},
	{"redis-rb 6.0", [][]saying{concat(
		[]saying{says("HELLO", "3").liked(remaining.equal)},
		setInfo("redis-client(redis-rb_v6.0.0)", "0.30.0"), setInfo("redis-rb", "6.0.0"))}},
	{"predis 3.6", [][]saying{concat(
		[]saying{says("HELLO", "2", "SETNAME", "predis").liked(remaining.equal)},
		setInfo("predis", "3.6.0"), []saying{says("SELECT", "2")})}},
	{"redis-rs 1.6", [][]saying{concat([]saying{says("SELECT", "2")}, setInfo("redis-rs", "1.6.0"))}},
	{"redis-plus-plus 1.3", [][]saying{{says("CLIENT", "SETNAME", "worker")}, {says("SELECT", "2")}}},
	{"lyokato/redlock", [][]saying{{says("SCRIPT", "LOAD", releaseScripts["one line"])}, {says("SCRIPT", "LOAD", extendScripts["pexpire"])}}},
}

// stackExchangeQuestions is what StackExchange.Redis wants to know of a server.
func stackExchangeQuestions() []saying {
	return []saying{
		says("CLIENT", "ID").liked(remaining.equal).orRefused(),
		says("CONFIG", "GET", "timeout").orRefused(),
		says("CONFIG", "GET", "slave-read-only").orRefused(),
		says("CONFIG", "GET", "databases").orRefused(),
		says("SENTINEL", "MASTERS").orRefused(),
		says("INFO", "replication").liked(shape.equal),
		says("INFO", "server").liked(shape.equal),
		says("CLUSTER", "NODES").orRefused(),
		says("GET", "__Booksleeve_TieBreak").orRefused(),
	}
}

// tracer ends the handshake of StackExchange.Redis: it is connected once the
// bytes of its own choice, which are no text, come back.
func tracer() []saying {
	return []saying{says("ECHO", "\x01\x80\r\n\xff\x00tracer-id")}
}

func concat(parts ...[]saying) []saying {
	var all []saying
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
}

// lockLines is what every replayed client does once it is connected.
func lockLines(key string) []saying {
	return []saying{
		says("SET", key, "token-of-the-first-1", "EX", "60", "NX"),
		says("SET", key, "token-of-the-second", "PX", "60000", "NX"),
		says("GET", key),
		says("EVAL", releaseScripts["one line"], "1", key, "token-of-the-second"),
		says("WATCH", key), says("GET", key), says("MULTI"), says("DEL", key), says("EXEC"),
		says("GET", key),
	}
}

// TestReplayedHandshakes sends the first bytes of clients that are not here,
// with the upstream up and down, and then locks.
func TestReplayedHandshakes(t *testing.T) {
	c := startCluster(t, proxyOptions{})
	plain := startRedis(t, "plain")
	orphan := c.addProxy(t, proxyOptions{upstream: fmt.Sprintf("redis://127.0.0.1:%d", freePort(t))})
	for i, handshake := range replayedHandshakes {
		for _, alone := range []bool{false, true} {
			name, addr := handshake.client, c.proxy.addr()
			if alone {
				name, addr = name+", upstream down", orphan.addr()
			}
			t.Run(name, func(t *testing.T) {
				atPlain, atProxy := dialWire(t, plain.addr(), 2), dialWire(t, addr, 2)
				writes := handshake.writes
				if handshake.client != "StackExchange.Redis 2.8, subscriber" {
					writes = append(writes[:len(writes):len(writes)], lockLines(fmt.Sprintf("lock:replayed-%d-%t", i, alone)))
				}
				for _, write := range writes {
					replay(t, atPlain, atProxy, write, alone)
				}
				t.Logf("%s: handshake and locks", name)
			})
		}
	}
}

// replay sends a pipeline in one write to both servers.
func replay(t *testing.T, atPlain, atProxy *wire, pipeline []saying, alone bool) {
	t.Helper()
	var raw []byte
	for _, each := range pipeline {
		raw = append(raw, encode(each.args...)...)
	}
	for _, server := range []*wire{atPlain, atProxy} {
		if err := server.send(raw); err != nil {
			t.Fatal(err)
		}
	}
	for _, each := range pipeline {
		want, err := atPlain.read()
		if err != nil {
			t.Fatalf("%q: plain Redis: %v", each.args, err)
		}
		got, err := atProxy.read()
		if err != nil {
			t.Fatalf("%q: %v after %q, plain Redis answers %q", each.args, err, got, want)
		}
		rule := each.like
		if alone && each.alone != nil {
			rule = each.alone
		}
		if !rule(want, got) {
			t.Errorf("%q: %q, plain Redis answers %q", each.args, got, want)
		}
	}
}

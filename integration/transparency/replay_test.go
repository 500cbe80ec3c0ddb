package transparency

import (
	"fmt"
	"testing"

	"redlock-proxy/integration/corpus"
	"redlock-proxy/integration/rig"
)

// Some clients cannot be installed where the suite runs. Their first bytes are known, so
// the test sends these bytes itself. A line is the content of one write. Each command's
// reply is compared with plain Redis's.

// saying is one command of a handshake.
type saying struct {
	args []string
	// like compares the reply with plain Redis's.
	like func(plain, got []byte) bool
	// alone compares while the upstream is down; nil: as like does.
	alone func(plain, got []byte) bool
}

func says(args ...string) saying { return saying{args: args, like: corpus.Exact.Equal} }

func (s saying) liked(like func(plain, got []byte) bool) saying {
	s.like = like
	return s
}

// areIDs tells whether both servers answered an id. The proxy counts its own clients.
func areIDs(plain, got []byte) bool {
	isID := func(reply []byte) bool {
		return len(reply) > 3 && reply[0] == ':' && reply[1] >= '1' && reply[1] <= '9'
	}
	return isID(plain) && isID(got)
}

// orRefused is for questions that only the upstream can answer. While it is down, the
// client gets an error and keeps its connection.
func (s saying) orRefused() saying {
	s.alone = func(_, got []byte) bool { return got[0] == '-' }
	return s
}

// tolerant is for optional commands: the client goes on whether or not they succeed.
func tolerant(_, got []byte) bool { return got[0] == '-' || string(got) == "+OK\r\n" }

func setInfo(name, version string) []saying {
	return []saying{
		says("CLIENT", "SETINFO", "lib-name", name).liked(tolerant),
		says("CLIENT", "SETINFO", "lib-ver", version).liked(tolerant),
	}
}

// replayedHandshake is the first bytes of one connection, a row for each write.
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
			[]saying{says("CLIENT", "ID").liked(areIDs)},
			tracer(),
			[]saying{says("SUBSCRIBE", "__Booksleeve_MasterChanged").orRefused()}),
		// This is the heartbeat of a subscriber's connection. If the subscription was
		// refused, it is an ordinary connection.
		{{args: []string{"PING"}, like: corpus.Exact.Equal, alone: func(_, got []byte) bool { return string(got) == "+PONG\r\n" }}},
	}},
	{"StackExchange.Redis 3.1", [][]saying{concat(
		[]saying{says("HELLO", "3").liked(corpus.Hello.Equal), says("CLIENT", "SETNAME", "HOST(SE.Redis-v3.1.31)")},
		setInfo("SE.Redis", "3.1.31"), stackExchangeQuestions(), tracer())}},
	{"redis-client 0.30", [][]saying{{says("HELLO", "3").liked(corpus.Hello.Equal)}}},
	{"redis-rb 6.0", [][]saying{concat(
		[]saying{says("HELLO", "3").liked(corpus.Hello.Equal)},
		setInfo("redis-client(redis-rb_v6.0.0)", "0.30.0"), setInfo("redis-rb", "6.0.0"))}},
	{"predis 3.6", [][]saying{concat(
		[]saying{says("HELLO", "2", "SETNAME", "predis").liked(corpus.Hello.Equal)},
		setInfo("predis", "3.6.0"), []saying{says("SELECT", "2")})}},
	{"redis-rs 1.6", [][]saying{concat([]saying{says("SELECT", "2")}, setInfo("redis-rs", "1.6.0"))}},
	{"redis-plus-plus 1.3", [][]saying{{says("CLIENT", "SETNAME", "worker")}, {says("SELECT", "2")}}},
	{"lyokato/redlock", [][]saying{{says("SCRIPT", "LOAD", corpus.ReleaseScripts["one line"])}, {says("SCRIPT", "LOAD", corpus.ExtendScripts["pexpire"])}}},
}

// stackExchangeQuestions are the questions of StackExchange.Redis to a new server.
func stackExchangeQuestions() []saying {
	return []saying{
		says("CLIENT", "ID").liked(areIDs),
		says("CONFIG", "GET", "timeout").orRefused(),
		says("CONFIG", "GET", "slave-read-only").orRefused(),
		says("CONFIG", "GET", "databases").orRefused(),
		says("SENTINEL", "MASTERS").orRefused(),
		says("INFO", "replication").liked(corpus.Shape.Equal),
		says("INFO", "server").liked(corpus.Shape.Equal),
		says("CLUSTER", "NODES").orRefused(),
		says("GET", "__Booksleeve_TieBreak").orRefused(),
	}
}

// tracer ends the handshake of StackExchange.Redis. The client counts as connected when
// bytes that it chose itself, which are no text, come back.
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

// lockLines are the lock commands of every replayed client after its handshake.
func lockLines(key string) []saying {
	return []saying{
		says("SET", key, "token-of-the-first-1", "EX", "60", "NX"),
		says("SET", key, "token-of-the-second", "PX", "60000", "NX"),
		says("GET", key),
		says("EVAL", corpus.ReleaseScripts["one line"], "1", key, "token-of-the-second"),
		says("WATCH", key), says("GET", key), says("MULTI"), says("DEL", key), says("EXEC"),
		says("GET", key),
	}
}

// TestReplayedHandshakes sends the first bytes of clients that are not installed, with the
// upstream up and down, and then takes locks.
func TestReplayedHandshakes(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	plain := rig.StartServer(t, "plain")
	orphan := c.AddProxy(t, rig.Options{Upstream: fmt.Sprintf("redis://127.0.0.1:%d", rig.FreePort(t))})
	for i, handshake := range replayedHandshakes {
		for _, alone := range []bool{false, true} {
			name, addr := handshake.client, c.Proxy.Addr()
			if alone {
				name, addr = name+", upstream down", orphan.Addr()
			}
			t.Run(name, func(t *testing.T) {
				atPlain, atProxy := rig.Dial(t, plain.Addr(), 2), rig.Dial(t, addr, 2)
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
func replay(t *testing.T, atPlain, atProxy *rig.Wire, pipeline []saying, alone bool) {
	t.Helper()
	var raw []byte
	for _, each := range pipeline {
		raw = append(raw, rig.Encode(each.args...)...)
	}
	for _, server := range []*rig.Wire{atPlain, atProxy} {
		if err := server.Send(raw); err != nil {
			t.Fatal(err)
		}
	}
	for _, each := range pipeline {
		want, err := atPlain.Read()
		if err != nil {
			t.Fatalf("%q: plain Redis: %v", each.args, err)
		}
		got, err := atProxy.Read()
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

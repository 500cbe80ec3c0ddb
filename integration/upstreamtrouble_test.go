package integration

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"
)

const upstreamAway = "-NOUPSTREAM the upstream server of this proxy cannot be reached\r\n"

// expectReply sends one command and requires its reply.
func (w *wire) expectReply(t testing.TB, want string, args ...string) {
	t.Helper()
	if got, err := w.do(args...); string(got) != want || err != nil {
		t.Fatalf("%q is answered %.200q (%v), want %q", args, got, err, want)
	}
}

// expectEnd reads up to the end of the connection and returns what came.
func (w *wire) expectEnd(t testing.TB) []byte {
	t.Helper()
	_ = w.conn.SetReadDeadline(time.Now().Add(patience))
	rest, err := io.ReadAll(w.in)
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatalf("the connection does not end after %.200q: %v", rest, err)
	}
	return rest
}

// TestUpstreamDiesInTheMiddle: of a reply, of a transaction, of a subscription.
// Each client gets what the upstream had said and the end of its connection; a
// lock command whose turn never came is not run, and new clients lock.
func TestUpstreamDiesInTheMiddle(t *testing.T) {
	c := startCluster(t, proxyOptions{logLevel: "warn"})
	value := strings.Repeat("0123456789", 5<<20)
	if err := c.upstream.direct.Set(t.Context(), "big", value, 0).Err(); err != nil {
		t.Fatal(err)
	}
	reply := fmt.Sprintf("$%d\r\n%s\r\n", len(value), value)

	reader := dialWire(t, c.proxy.addr(), 2)
	if err := reader.send(append(encode("GET", "big"), encode("SET", "lock:behind", "token-of-sixteen", "NX", "PX", "60000")...)); err != nil {
		t.Fatal(err)
	}
	begun := make([]byte, 1<<20)
	if _, err := io.ReadFull(reader.in, begun); err != nil {
		t.Fatal(err)
	}
	writer := dialWire(t, c.proxy.addr(), 2)
	writer.expectReply(t, "+OK\r\n", "MULTI")
	writer.expectReply(t, "+QUEUED\r\n", "SET", "plain", "1")
	subscriber := dialWire(t, c.proxy.addr(), 3)
	subscriber.expectReply(t, ">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n", "SUBSCRIBE", "c")
	blocked := dialWire(t, c.proxy.addr(), 2)
	if err := blocked.send(encode("BLPOP", "queue", "0")); err != nil {
		t.Fatal(err)
	}

	waitFor(t, "a client blocks", func() error {
		if info := c.upstream.direct.Info(t.Context(), "clients").Val(); !strings.Contains(info, "blocked_clients:1\r\n") {
			return errors.New(info)
		}
		return nil
	})

	c.upstream.crash()
	rest := reader.expectEnd(t)
	if got := append(begun, rest...); len(got) >= len(reply) || !strings.HasPrefix(reply, string(got)) {
		t.Errorf("the reader got %d bytes that are no beginning of the reply of %d", len(got), len(reply))
	}
	for name, w := range map[string]*wire{"transaction": writer, "subscriber": subscriber, "blocked": blocked} {
		if rest := w.expectEnd(t); len(rest) > 0 {
			t.Errorf("%s: %q before the end", name, rest)
		}
	}
	for _, master := range c.masters {
		if _, held := master.value(t, "lock:behind"); held {
			t.Errorf("%s holds the lock of a command whose turn never came", master.name)
		}
	}
	w := dialWire(t, c.proxy.addr(), 2)
	w.expectReply(t, upstreamAway, "GET", "plain")
	w.expectReply(t, "+OK\r\n", "SET", "lock:after", "token-of-sixteen", "NX", "PX", "60000")
	c.upstream.start(t)
	w.expectReply(t, "$-1\r\n", "GET", "plain")
}

// TestUpstreamHangs: it accepts connections and answers nothing. Who had begun
// waits, as with any hung Redis; who comes is told so in bounded time; locks do
// not need it; and a client that goes leaves nothing behind.
func TestUpstreamHangs(t *testing.T) {
	c := startCluster(t, proxyOptions{logLevel: "warn"})
	open := dialWire(t, c.proxy.addr(), 2)
	open.expectReply(t, "$-1\r\n", "GET", "plain")
	atRest := c.proxy.metric(t, "redlock_clients_connected")
	leaving := map[string][]byte{
		"reads":                  encode("GET", "plain"),
		"reads, then locks":      append(encode("GET", "plain"), encode("SET", "lock:behind", "token-of-sixteen", "NX", "PX", "60000")...),
		"blocks":                 encode("BLPOP", "queue", "0"),
		"holds a transaction":    append(encode("MULTI"), append(encode("SET", "plain", "1"), encode("EXEC")...)...),
		"both planes at once":    encode("DEL", "plain", "lock:a"),
		"writes more than fits":  bytes.Repeat(encode("SET", "plain", strings.Repeat("v", 1000)), 500),
		"changes its database":   encode("SELECT", "3"),
		"waits and asks further": append(encode("PING"), bytes.Repeat(encode("GET", "lock:none"), 100)...),
	}
	opened := map[string]*wire{}
	for name := range leaving {
		opened[name] = dialWire(t, c.proxy.addr(), 2)
		opened[name].expectReply(t, "$-1\r\n", "GET", "none")
	}
	c.upstream.pause()
	defer c.upstream.resume()
	for name, command := range leaving {
		for _, w := range []*wire{opened[name], dialWire(t, c.proxy.addr(), 2)} {
			if err := w.send(command); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			_ = w.conn.Close()
		}
	}
	w := dialWire(t, c.proxy.addr(), 3)
	w.expectReply(t, "+OK\r\n", "SET", "lock:meanwhile", "token-of-sixteen", "NX", "PX", "60000")
	w.expectReply(t, upstreamAway, "GET", "plain")
	const script = "return redis.call('get', KEYS[1])"
	w.expectReply(t, "$40\r\n"+sha1Hex(script)+"\r\n", "SCRIPT", "LOAD", script)
	w.expectReply(t, "$16\r\ntoken-of-sixteen\r\n", "EVALSHA", sha1Hex(script), "1", "lock:meanwhile")
	if info, err := w.do("INFO"); err != nil || !strings.Contains(string(info), "loading:0") {
		t.Errorf("INFO with a hung upstream: %.200q %v", info, err)
	}
	_ = w.conn.Close()
	waitFor(t, "the clients that went leave nothing behind", func() error {
		if now := c.proxy.metric(t, "redlock_clients_connected"); now != atRest {
			return errors.New(now + " clients are connected, were " + atRest)
		}
		return nil
	})

	if err := open.send(append(encode("SET", "plain", "1"), encode("SET", "lock:turn", "token-of-sixteen", "NX", "PX", "60000")...)); err != nil {
		t.Fatal(err)
	}
	c.upstream.resume()
	for range 2 {
		if reply, err := open.read(); string(reply) != "+OK\r\n" {
			t.Errorf("after the pause: %q %v", reply, err)
		}
	}
	for _, master := range c.masters {
		if _, held := master.value(t, "lock:behind"); held {
			t.Errorf("%s holds the lock of a client that had gone", master.name)
		}
	}
}

// TestUpstreamTellsItsState: a server that loads, or that has become a replica,
// is quoted, and locks go on.
func TestUpstreamTellsItsState(t *testing.T) {
	upstream := startRedis(t, "upstream", "--enable-debug-command", "yes",
		"--key-load-delay", "200", "--loading-process-events-interval-bytes", "1024")
	c := startCluster(t, proxyOptions{upstream: upstream.url(), logLevel: "warn"})
	open := dialWire(t, c.proxy.addr(), 2)
	open.expectReply(t, "+OK\r\n", "SET", "plain", "1")

	primary := startRedis(t, "primary")
	if err := upstream.direct.Do(t.Context(), "REPLICAOF", "127.0.0.1", fmt.Sprint(primary.port)).Err(); err != nil {
		t.Fatal(err)
	}
	fresh := dialWire(t, c.proxy.addr(), 3)
	for _, w := range []*wire{open, fresh} {
		w.expectReply(t, "-READONLY You can't write against a read only replica.\r\n", "SET", "plain", "2")
		w.expectReply(t, "+OK\r\n", "SET", fmt.Sprintf("lock:%p", w), "token-of-sixteen", "NX", "PX", "60000")
	}
	if err := upstream.direct.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	open.expectReply(t, "+OK\r\n", "SET", "plain", "2")

	for _, command := range [][]any{{"DEBUG", "POPULATE", 20_000}, {"SAVE"}} {
		if err := upstream.direct.Do(t.Context(), command...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	upstream.crash()
	upstream.launch(t)
	const loading = "-LOADING Redis is loading the dataset in memory\r\n"
	waitFor(t, "it loads", func() error {
		err := upstream.direct.Get(t.Context(), "plain").Err()
		if err == nil || !strings.HasPrefix(err.Error(), "LOADING ") {
			return fmt.Errorf("it answers %v", err)
		}
		return nil
	})
	w := dialWire(t, c.proxy.addr(), 3)
	w.expectReply(t, "+OK\r\n", "SELECT", "1")
	w.expectReply(t, loading, "GET", "plain")
	if info, err := w.do("INFO", "persistence"); err != nil || !strings.Contains(string(info), "loading:1") {
		t.Errorf("INFO while loading: %.300q %v", info, err)
	}
	w.expectReply(t, "+OK\r\n", "SET", "lock:meanwhile", "token-of-sixteen", "NX", "PX", "60000")
	waitFor(t, "it has loaded", func() error {
		reply, err := w.do("GET", "key:1")
		if string(reply) == loading {
			return errors.New("still loading")
		}
		return err
	})
}

// TestPHPHearsOfADeadUpstream: phpredis answers false to an ERR, which a cache
// takes for a miss, and raises NOUPSTREAM. Locks go on.
func TestPHPHearsOfADeadUpstream(t *testing.T) {
	c := startCluster(t, proxyOptions{})
	c.upstream.crash()
	const script = `
$redis = new Redis();
$redis->connect('127.0.0.1', (int) $argv[1]);
try { var_dump($redis->get('plain')); } catch (RedisException $error) { echo $error->getMessage(), "\n"; }
var_dump($redis->set('lock:php', 'a token of sixteen bytes', ['nx', 'px' => 60000]));`
	out, err := exec.Command("php", "-r", script, fmt.Sprint(c.proxy.port)).CombinedOutput()
	if want := strings.TrimPrefix(upstreamAway, "-"); err != nil || string(out) != strings.TrimSuffix(want, "\r\n")+"\nbool(true)\n" {
		t.Errorf("%v:\n%s", err, out)
	}
}

package transparency

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"redlock-proxy/integration/rig"
)

const upstreamAway = "-NOUPSTREAM the upstream server of this proxy cannot be reached (deploy/INCIDENTS.md#noupstream)\r\n"

// TestUpstreamDiesInTheMiddle: the upstream dies in the middle of a reply, of a
// transaction or of a subscription. Each client gets the upstream's bytes so far and then
// the end of its connection. A lock command behind them in the pipeline does not run. New
// clients can lock.
func TestUpstreamDiesInTheMiddle(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{LogLevel: "warn"})
	value := strings.Repeat("0123456789", 5<<20)
	if err := c.Upstream.Direct.Set(t.Context(), "big", value, 0).Err(); err != nil {
		t.Fatal(err)
	}
	reply := fmt.Sprintf("$%d\r\n%s\r\n", len(value), value)

	reader := rig.Dial(t, c.Proxy.Addr(), 2)
	if err := reader.Send(append(rig.Encode("GET", "big"), rig.Encode("SET", "lock:behind", "token-of-sixteen", "NX", "PX", "60000")...)); err != nil {
		t.Fatal(err)
	}
	begun := make([]byte, 1<<20)
	if _, err := io.ReadFull(reader.In, begun); err != nil {
		t.Fatal(err)
	}
	writer := rig.Dial(t, c.Proxy.Addr(), 2)
	writer.ExpectReply(t, "+OK\r\n", "MULTI")
	writer.ExpectReply(t, "+QUEUED\r\n", "SET", "plain", "1")
	subscriber := rig.Dial(t, c.Proxy.Addr(), 3)
	subscriber.ExpectReply(t, ">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n", "SUBSCRIBE", "c")
	blocked := rig.Dial(t, c.Proxy.Addr(), 2)
	if err := blocked.Send(rig.Encode("BLPOP", "queue", "0")); err != nil {
		t.Fatal(err)
	}

	rig.WaitFor(t, "a client blocks", func() error {
		if info := c.Upstream.Direct.Info(t.Context(), "clients").Val(); !strings.Contains(info, "blocked_clients:1\r\n") {
			return errors.New(info)
		}
		return nil
	})

	c.Upstream.Kill()
	rest := reader.ExpectEnd(t)
	if got := append(begun, rest...); len(got) >= len(reply) || !strings.HasPrefix(reply, string(got)) {
		t.Errorf("the reader got %d bytes, which do not begin the reply of %d bytes", len(got), len(reply))
	}
	for name, w := range map[string]*rig.Wire{"transaction": writer, "subscriber": subscriber, "blocked": blocked} {
		if rest := w.ExpectEnd(t); len(rest) > 0 {
			t.Errorf("%s: %q before the end", name, rest)
		}
	}
	for _, master := range c.Masters {
		if _, held := master.Value(t, "lock:behind"); held {
			t.Errorf("%s holds the lock of a command whose turn never came", master.Name)
		}
	}
	w := rig.Dial(t, c.Proxy.Addr(), 2)
	w.ExpectReply(t, upstreamAway, "GET", "plain")
	w.ExpectReply(t, "+OK\r\n", "SET", "lock:after", "token-of-sixteen", "NX", "PX", "60000")
	c.Upstream.Start(t)
	w.ExpectReply(t, "$-1\r\n", "GET", "plain")
}

// TestUpstreamHangs: the upstream accepts connections and answers nothing. Clients that
// are already connected wait, as with any hung Redis. New clients get an error in bounded
// time. Locks work without the upstream. A client that leaves leaves nothing behind.
func TestUpstreamHangs(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{LogLevel: "warn"})
	open := rig.Dial(t, c.Proxy.Addr(), 2)
	open.ExpectReply(t, "$-1\r\n", "GET", "plain")
	atRest := c.Proxy.Metric(t, "redlock_clients_connected")
	leaving := map[string][]byte{
		"reads":                  rig.Encode("GET", "plain"),
		"reads, then locks":      append(rig.Encode("GET", "plain"), rig.Encode("SET", "lock:behind", "token-of-sixteen", "NX", "PX", "60000")...),
		"blocks":                 rig.Encode("BLPOP", "queue", "0"),
		"holds a transaction":    append(rig.Encode("MULTI"), append(rig.Encode("SET", "plain", "1"), rig.Encode("EXEC")...)...),
		"both planes at once":    rig.Encode("DEL", "plain", "lock:a"),
		"writes more than fits":  bytes.Repeat(rig.Encode("SET", "plain", strings.Repeat("v", 1000)), 500),
		"changes its database":   rig.Encode("SELECT", "3"),
		"waits and asks further": append(rig.Encode("PING"), bytes.Repeat(rig.Encode("GET", "lock:none"), 100)...),
	}
	opened := map[string]*rig.Wire{}
	for name := range leaving {
		opened[name] = rig.Dial(t, c.Proxy.Addr(), 2)
		opened[name].ExpectReply(t, "$-1\r\n", "GET", "none")
	}
	c.Upstream.Pause()
	defer c.Upstream.Resume()
	for name, command := range leaving {
		for _, w := range []*rig.Wire{opened[name], rig.Dial(t, c.Proxy.Addr(), 2)} {
			if err := w.Send(command); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			_ = w.Conn.Close()
		}
	}
	w := rig.Dial(t, c.Proxy.Addr(), 3)
	w.ExpectReply(t, "+OK\r\n", "SET", "lock:meanwhile", "token-of-sixteen", "NX", "PX", "60000")
	w.ExpectReply(t, upstreamAway, "GET", "plain")
	const script = "return redis.call('get', KEYS[1])"
	w.ExpectReply(t, "$40\r\n"+rig.SHA1(script)+"\r\n", "SCRIPT", "LOAD", script)
	w.ExpectReply(t, "$16\r\ntoken-of-sixteen\r\n", "EVALSHA", rig.SHA1(script), "1", "lock:meanwhile")
	if info, err := w.Do("INFO"); err != nil || !strings.Contains(string(info), "loading:0") {
		t.Errorf("INFO with a hung upstream: %.200q %v", info, err)
	}
	_ = w.Conn.Close()
	rig.WaitFor(t, "the clients that went leave nothing behind", func() error {
		if now := c.Proxy.Metric(t, "redlock_clients_connected"); now != atRest {
			return errors.New(now + " clients are connected, were " + atRest)
		}
		return nil
	})

	if err := open.Send(append(rig.Encode("SET", "plain", "1"), rig.Encode("SET", "lock:turn", "token-of-sixteen", "NX", "PX", "60000")...)); err != nil {
		t.Fatal(err)
	}
	c.Upstream.Resume()
	for range 2 {
		if reply, err := open.Read(); string(reply) != "+OK\r\n" {
			t.Errorf("after the pause: %q %v", reply, err)
		}
	}
	for _, master := range c.Masters {
		if _, held := master.Value(t, "lock:behind"); held {
			t.Errorf("%s holds the lock of a client that had gone", master.Name)
		}
	}
}

// TestUpstreamTellsItsState: if the upstream is loading or has become a replica, its error
// reaches the client unchanged, and locks go on.
func TestUpstreamTellsItsState(t *testing.T) {
	t.Parallel()
	upstream := rig.StartServer(t, "upstream", "--enable-debug-command", "yes",
		"--key-load-delay", "200", "--loading-process-events-interval-bytes", "1024")
	c := rig.StartCluster(t, rig.Options{Upstream: upstream.URL(), LogLevel: "warn"})
	open := rig.Dial(t, c.Proxy.Addr(), 2)
	open.ExpectReply(t, "+OK\r\n", "SET", "plain", "1")

	primary := rig.StartServer(t, "primary")
	if err := upstream.Direct.Do(t.Context(), "REPLICAOF", "127.0.0.1", fmt.Sprint(primary.Port)).Err(); err != nil {
		t.Fatal(err)
	}
	fresh := rig.Dial(t, c.Proxy.Addr(), 3)
	for _, w := range []*rig.Wire{open, fresh} {
		w.ExpectReply(t, "-READONLY You can't write against a read only replica.\r\n", "SET", "plain", "2")
		w.ExpectReply(t, "+OK\r\n", "SET", fmt.Sprintf("lock:%p", w), "token-of-sixteen", "NX", "PX", "60000")
	}
	if err := upstream.Direct.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	open.ExpectReply(t, "+OK\r\n", "SET", "plain", "2")

	for _, command := range [][]any{{"DEBUG", "POPULATE", 20_000}, {"SAVE"}} {
		if err := upstream.Direct.Do(t.Context(), command...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	upstream.Kill()
	upstream.Launch(t)
	const loading = "-LOADING Redis is loading the dataset in memory\r\n"
	rig.WaitFor(t, "it loads", func() error {
		err := upstream.Direct.Get(t.Context(), "plain").Err()
		if err == nil || !strings.HasPrefix(err.Error(), "LOADING ") {
			return fmt.Errorf("it answers %v", err)
		}
		return nil
	})
	w := rig.Dial(t, c.Proxy.Addr(), 3)
	w.ExpectReply(t, "+OK\r\n", "SELECT", "1")
	w.ExpectReply(t, loading, "GET", "plain")
	if info, err := w.Do("INFO", "persistence"); err != nil || !strings.Contains(string(info), "loading:1") {
		t.Errorf("INFO while loading: %.300q %v", info, err)
	}
	w.ExpectReply(t, "+OK\r\n", "SET", "lock:meanwhile", "token-of-sixteen", "NX", "PX", "60000")
	rig.WaitFor(t, "it has loaded", func() error {
		reply, err := w.Do("GET", "key:1")
		if string(reply) == loading {
			return errors.New("still loading")
		}
		return err
	})
}

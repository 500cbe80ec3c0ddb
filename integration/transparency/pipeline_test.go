package transparency

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"redlock-proxy/integration/corpus"
	"redlock-proxy/integration/rig"
)

// mixedPipeline is a sequence of commands for both planes. Their replies are right only if
// the commands are executed in this order. It leaves no key behind.
func mixedPipeline() (raw []byte, replies int) {
	lines := []string{
		"SET plain:p 1", "SET lock:p token NX PX 100000", "INCR plain:p", "GET lock:p", "GET plain:p",
		"SET lock:p other NX PX 100000", "MGET plain:p lock:p", "EXISTS lock:p plain:p lock:q",
		"HSET lock:p:hash f v", "HGETALL lock:p:hash", "LPUSH plain:list a b", "LRANGE plain:list 0 -1",
		"GET lock:p:hash", "NOSUCHCOMMAND x", "GET", "SELECT 1", "SET lock:p db1 NX PX 100000", "SET plain:p db1",
		"GET lock:p", "GET plain:p", "DEL lock:p plain:p", "SELECT 0", "MULTI", "INCR plain:p", "GET plain:p", "EXEC",
		"ECHO lock:p", "EVAL \"" + `return {redis.call('get', KEYS[1]), ARGV[1]}` + "\" 1 lock:p x",
		"GET lock:p", "DEL plain:p plain:list lock:p lock:p:hash", "PING",
	}
	for _, each := range lines {
		raw = append(raw, rig.Encode(corpus.Words(each)...)...)
	}
	raw = append(raw, "*0\r\n\r\nPING inline\r\n"...) // an empty array and an empty line are no commands
	return raw, len(lines) + 1
}

// TestPipelineCutAnywhere sends a pipeline for both planes in two writes, cut at every
// byte. The replies must be the same bytes as plain Redis's.
func TestPipelineCutAnywhere(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	plain := rig.StartServer(t, "plain")
	raw, replies := mixedPipeline()
	owning := c.AddProxy(t, rig.Options{More: "upstream_connections: own\n"})
	for i, proxy := range []*rig.Proxy{c.Proxy, owning, c.Proxy, owning} {
		protocol := 2 + i/2
		t.Run(fmt.Sprintf("RESP%d, %s connections", protocol, []string{"shared", "own"}[i%2]), func(t *testing.T) {
			want := wholeAnswer(t, rig.Dial(t, plain.Addr(), protocol), replies, raw)
			if len(want) != replies {
				t.Fatalf("plain Redis gave %d answers, want %d", len(want), replies)
			}
			proxied := rig.Dial(t, proxy.Addr(), protocol)
			compareAnswers(t, "in one write", want, decidedAnswer(t, proxied, replies, raw))
			step := 1
			if protocol == 3 {
				step = 7 // RESP3 differs in its replies, not in the commands
			}
			for cut := 1; cut < len(raw) && !t.Failed(); cut += step {
				got := decidedAnswer(t, proxied, replies, raw[:cut], raw[cut:])
				compareAnswers(t, fmt.Sprintf("cut at byte %d", cut), want, got)
			}
			var single [][]byte
			for i := range raw {
				single = append(single, raw[i:i+1])
			}
			compareAnswers(t, "byte by byte", want, decidedAnswer(t, proxied, replies, single...))
		})
	}
}

// decidedAnswer is wholeAnswer, but sends the pipeline again if too few masters answered in
// time, as on a busy machine.
func decidedAnswer(t *testing.T, w *rig.Wire, replies int, pieces ...[]byte) (answers [][]byte) {
	t.Helper()
	undecided := func(answers [][]byte) bool {
		return slices.ContainsFunc(answers, func(answer []byte) bool { return bytes.HasPrefix(answer, []byte("-QUORUMLOST ")) })
	}
	rig.WaitFor(t, "each lock command is decided", func() error {
		if answers = wholeAnswer(t, w, replies, pieces...); !undecided(answers) {
			return nil
		}
		clean := slices.Concat(rig.Encode("SELECT", "1"), rig.Encode("DEL", "lock:p"), rig.Encode("DEL", "plain:p"), rig.Encode("SELECT", "0"),
			rig.Encode("DEL", "lock:p", "lock:p:hash"), rig.Encode("DEL", "plain:p", "plain:list"))
		rig.WaitFor(t, "its keys are gone", func() error {
			if undecided(wholeAnswer(t, w, 6, clean)) {
				return errors.New("QUORUMLOST")
			}
			return nil
		})
		return fmt.Errorf("%q", answers)
	})
	return answers
}

func wholeAnswer(t *testing.T, w *rig.Wire, replies int, pieces ...[]byte) [][]byte {
	t.Helper()
	for _, piece := range pieces {
		if err := w.Send(piece); err != nil {
			t.Fatal(err)
		}
	}
	var answers [][]byte
	for range replies {
		answer, err := w.Read()
		if err != nil {
			t.Fatalf("after %d answers: %v", len(answers), err)
		}
		answers = append(answers, answer)
	}
	return answers
}

func compareAnswers(t *testing.T, how string, want, got [][]byte) {
	t.Helper()
	for i := range want {
		if !bytes.Equal(want[i], got[i]) {
			t.Errorf("%s, command %d:\n   plain: %q\n proxied: %q", how, i+1, want[i], got[i])
		}
	}
}

// TestKeysOfBothServers: the proxy refuses a command that needs both servers at once, with
// CROSSLOCK, and changes nothing on either.
func TestKeysOfBothServers(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	w := rig.Dial(t, c.Proxy.Addr(), 2)
	for _, text := range []string{"SET lock:a token NX PX 100000", "SET plain:a value"} {
		if answer, err := w.Do(corpus.Words(text)...); err != nil || string(answer) != "+OK\r\n" {
			t.Fatalf("%s: %q %v", text, answer, err)
		}
	}
	for _, text := range []string{
		"RENAME lock:a plain:b", "RENAME plain:a lock:b", "COPY plain:a lock:b", "MSET lock:c 1 plain:c 2",
		"MSETNX lock:c 1 plain:c 2", "SUNIONSTORE plain:c lock:a", "LMOVE lock:l plain:l LEFT LEFT",
		"EVAL \"return redis.call('del', KEYS[1], KEYS[2])\" 2 lock:a plain:a", "SORT plain:l STORE lock:l",
		"ZUNIONSTORE lock:z 1 plain:z", "BITOP AND lock:b plain:a", "GEOSEARCHSTORE lock:g plain:g FROMLONLAT 1 1 BYRADIUS 1 m",
	} {
		answer, err := w.Do(corpus.Words(text)...)
		if err != nil || !bytes.HasPrefix(answer, []byte("-CROSSLOCK ")) {
			t.Errorf("%s answers %q, %v; want CROSSLOCK", text, answer, err)
		}
	}
	c.WaitHeld(t, "lock:a", "token")
	if value, ok := c.Upstream.Value(t, "plain:a"); !ok || value != "value" {
		t.Errorf("plain:a is %q, %v", value, ok)
	}
	if n := c.Upstream.Direct.DBSize(t.Context()).Val(); n != 1 {
		t.Errorf("the upstream has %d keys, want 1", n)
	}
}

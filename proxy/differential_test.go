package proxy

import (
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/redlock/resp"
)

// shown are the whole values of an answer, as dialogues have them.
func shown(answer string) (lines []string) {
	for rest := []byte(answer); len(rest) > 0; {
		var line string
		if line, rest = proxytest.Show(rest); line == "" {
			break
		}
		lines = append(lines, proxytest.Mask(line))
	}
	return lines
}

// values reads that many top-level values, or what comes until patience ends.
func (c *testClient) values(n int) string {
	_ = c.SetReadDeadline(time.Now().Add(patience))
	var got []byte
	var scanner resp.Scanner
	buf := make([]byte, 64<<10)
	for n > 0 {
		more, err := c.Read(buf)
		got = append(got, buf[:more]...)
		for rest := buf[:more]; len(rest) > 0; {
			used, done, err := scanner.Scan(rest)
			if err != nil {
				return string(got)
			}
			if done {
				n--
			}
			rest = rest[used:]
		}
		if err != nil {
			break
		}
	}
	return string(got)
}

// upTo reads what comes before a text that ends it.
func (c *testClient) upTo(end string) string {
	c.t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	var got []byte
	for buf := make([]byte, 64<<10); !strings.HasSuffix(string(got), end); {
		n, err := c.Read(buf)
		if got = append(got, buf[:n]...); err != nil {
			c.t.Fatalf("%v behind %.1000q, want %q", err, got, end)
		}
	}
	return strings.TrimSuffix(string(got), end)
}

// awaitNoSubscriber waits until Redis has no subscriber. The proxy closes its upstream
// connection a moment after its client's, and PUBLISH would count it until then.
func awaitNoSubscriber(t *testing.T, redis *proxytest.Redis) {
	t.Helper()
	for deadline := time.Now().Add(patience); redis.Ask(t, "CLIENT LIST TYPE PUBSUB") != "$0\r\n\r\n"; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("Redis keeps a subscriber")
		}
	}
}

// programs are the pieces of testdata/programs.txt.
func programs(t *testing.T) (pieces []string) {
	t.Helper()
	text, err := os.ReadFile("testdata/programs.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if raw, isRaw := strings.CutPrefix(line, "raw: "); isRaw {
			pieces = append(pieces, proxytest.Unquote(raw))
		} else if line[0] != '#' {
			pieces = append(pieces, strings.ReplaceAll(line, " | ", "\r\n")+"\r\n")
		}
	}
	return pieces
}

func TestRandomProgramsAnswerAsOnOneRedis(t *testing.T) {
	redis, pieces := proxytest.StartRedis(t), programs(t)
	for seed := range uint64(150) {
		random := rand.New(rand.NewPCG(seed, 0))
		var program strings.Builder
		for range 1 + random.IntN(30) {
			program.WriteString(pieces[random.IntN(len(pieces))])
		}
		text := program.String()
		redis.Ask(t, "FLUSHALL")
		direct := dialTest(t, "unix", redis.Socket)
		go func() { _, _ = direct.Write([]byte(text + "ECHO end\r\nECHO END\r\n")) }()
		want := shown(strings.TrimSuffix(direct.upTo(bulk("END")), bulk("end"))) // which may be left out
		_ = direct.Close()
		redis.Ask(t, "FLUSHALL")
		p := startTestProxy(t, redis, []func(*testConfig){func(*testConfig) {}, sharing}[seed%2])
		near, far := net.Pipe()
		p.clients.Welcome(far)
		client := &testClient{near, t}
		go func() {
			for rest := text; len(rest) > 0; {
				n := min(len(rest), 1+random.IntN(200))
				_, _ = near.Write([]byte(rest[:n]))
				rest = rest[n:]
			}
		}()
		got := shown(client.values(len(want)))
		_ = near.Close()
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: %.2000q\n one Redis answers %.2000q\n the proxy         %.2000q", seed, text, want, got)
		}
	}
}

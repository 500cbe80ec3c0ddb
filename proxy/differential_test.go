package proxy

import (
	"math/rand/v2"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/redlock/resp"
)

// incidental are the differences between any two connections to one Redis.
var incidental = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`\$2\r\nid\r\n:\d+`), "$$2\r\nid\r\n:N"},
	{regexp.MustCompile(`\+\d+\.\d+ \[\d+ [^\]]*\]`), "+TIME [WHO]"},
}

func withoutIncidentals(reply string) string {
	for _, i := range incidental {
		reply = i.pattern.ReplaceAllString(reply, i.instead)
	}
	return reply
}

// countValues counts the whole top-level values in an answer.
func countValues(answer string) (n int) {
	var scanner resp.Scanner
	for rest := []byte(answer); len(rest) > 0; {
		used, done, err := scanner.Scan(rest)
		if err != nil || !done {
			return n
		}
		n++
		rest = rest[used:]
	}
	return n
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

// programs are pieces of which random ones are made. Lock keys behave as plain
// ones do, so a program that mixes them must read as on one Redis.
var programs = []string{
	"GET a\r\n", "SET a 1\r\n", "DEL a\r\n", "INCR a\r\n", "LRANGE a 0 -1\r\n", "PING\r\n", "ECHO text\r\n", "NOSUCH\r\n", "GET\r\n", "SELECT 0\r\n",
	"SET lock:a 1 NX\r\n", "GET lock:a\r\n", "DEL lock:a\r\n", "SET lock:b 2 NX\r\n", "GET lock:b\r\n",
	"DEL a lock:a b lock:b\r\n", "MGET a lock:a lock:b b lock:a\r\n", "EXISTS lock:a a a\r\n", "TOUCH b lock:b\r\n",
	"MULTI\r\nSET a 1\r\nGET a\r\nEXEC\r\n", "MULTI\r\nPING\r\nSET lock:a 3 NX\r\nGET lock:a\r\nEXEC\r\n", "MULTI\r\nDEL lock:a\r\nDISCARD\r\n", "MULTI\r\nEXEC\r\n", "MULTI\r\nGET\r\nGET lock:a\r\nEXEC\r\n",
	"WATCH a\r\nGET a\r\nMULTI\r\nSET a 5\r\nEXEC\r\n", "WATCH lock:a\r\nGET lock:a\r\nMULTI\r\nDEL lock:a\r\nEXEC\r\n", "WATCH lock:a\r\nUNWATCH\r\n",
	"CLIENT REPLY OFF\r\nGET lock:a\r\nGET a\r\nSET lock:a 9 NX\r\nCLIENT REPLY ON\r\n", "CLIENT REPLY SKIP\r\nGET lock:a\r\n", "CLIENT REPLY SKIP\r\nGET a\r\n",
	"SUBSCRIBE c\r\nGET lock:a\r\nUNSUBSCRIBE\r\n", "SUBSCRIBE c d\r\nPSUBSCRIBE p\r\nGET a\r\nUNSUBSCRIBE\r\nPUNSUBSCRIBE\r\n",
	"HELLO 3\r\n", "HELLO 2\r\n", "RESET\r\n", "CLIENT SETNAME x\r\n", "CLIENT GETNAME\r\n", "EVAL \"return {1,{2,'x'}}\" 0\r\n",
	"*2\r\n$4\r\nECHO\r\n$5000\r\n" + strings.Repeat("0123456789", 500) + "\r\n", "*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$8\r\n\r\n$-1\r\n:\r\n", "GET b\r\n", "\r\n", "*0\r\n",
}

func TestRandomProgramsAnswerAsOnOneRedis(t *testing.T) {
	redis := proxytest.StartRedis(t)
	for seed := range uint64(150) {
		random := rand.New(rand.NewPCG(seed, 0))
		var program strings.Builder
		for range 1 + random.IntN(30) {
			program.WriteString(programs[random.IntN(len(programs))])
		}
		text := program.String()
		redis.Ask(t, "FLUSHALL")
		direct := dialTest(t, "unix", redis.Socket)
		go func() { _, _ = direct.Write([]byte(text + "ECHO end\r\nECHO END\r\n")) }()
		want := withoutIncidentals(strings.TrimSuffix(direct.upTo(bulk("END")), bulk("end"))) // which may be left out
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
		got := withoutIncidentals(client.values(countValues(want)))
		_ = near.Close()
		if got != want {
			t.Fatalf("seed %d: %.2000q\n one Redis answers %.2000q\n the proxy         %.2000q", seed, text, want, got)
		}
	}
}

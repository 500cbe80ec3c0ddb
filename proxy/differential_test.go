package proxy

import (
	"io"
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

// converse sends the steps one after the other, each when the answer to the
// one before has come, then half-closes, and returns all that was received.
// An answer is over when as many values as wanted have come. If want is nil, the client
// speaks to Redis itself, and settle returns when Redis has answered.
func converse(client *testClient, steps []string, want []string, settle func()) (answers []string) {
	client.t.Helper()
	for i, step := range steps {
		_, _ = client.Write([]byte(step)) // fails after QUIT
		if want == nil {
			settle()
			answers = append(answers, client.received())
			continue
		}
		answers = append(answers, client.values(countValues(want[i])))
	}
	_ = client.Conn.(interface{ CloseWrite() error }).CloseWrite()
	_ = client.SetReadDeadline(time.Now().Add(patience))
	rest, err := io.ReadAll(client)
	if err != nil && !strings.Contains(err.Error(), "reset") {
		client.t.Errorf("after %q the connection does not end: %v", steps, err)
	}
	return append(answers, string(rest))
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

// compareWithRedis has the same conversation with Redis and with the proxy in
// front of it, and wants the same bytes.
func compareWithRedis(t *testing.T, redis *proxytest.Redis, p *testProxy, steps ...string) {
	t.Helper()
	begin := func() {
		redis.Ask(t, "FLUSHALL")
		redis.Ask(t, "SCRIPT FLUSH")
		awaitNoSubscriber(t, redis)
	}
	begin()
	direct := dialTest(t, "unix", redis.Socket)
	settle := func() {
		redis.Settle(t)
		redis.Settle(t)
	}
	want := converse(direct, steps, nil, settle)
	_ = direct.Close()
	begin()
	client := p.dial(t)
	got := converse(client, steps, want, nil)
	_ = client.Close()
	wanted, given := withoutIncidentals(strings.Join(want, "")), withoutIncidentals(strings.Join(got, ""))
	if wanted == given {
		return
	}
	at := 0
	for at < min(len(wanted), len(given)) && wanted[at] == given[at] {
		at++
	}
	from := max(at-40, 0)
	t.Errorf("%.300q: from byte %d on\n Redis answers %.200q\n the proxy     %.200q", steps, at, wanted[from:], given[from:])
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

func TestSessionAnswersAsRedis(t *testing.T) {
	redis := proxytest.StartRedis(t)
	masters := &fakeMasters{}
	own, sharing := startTestProxy(t, redis, masters.configure), startTestProxy(t, redis, masters.configure, sharing)
	conversations := map[string][]string{
		"handshake":          {"PING\r\n", "CLIENT SETNAME me\r\n", "SELECT 3\r\n", "SET a 1\r\n", "CLIENT GETNAME\r\n", "SELECT 0\r\n", "GET a\r\n", "SELECT 3\r\nGET a\r\n", "SELECT 99\r\n", "GET a\r\n"},
		"hello":              {"HELLO 3 SETNAME x\r\n", "GET none\r\n", "HELLO\r\n", "CLIENT GETNAME\r\n", "HELLO 2 SETNAME y\r\n", "CLIENT GETNAME\r\nGET none\r\n", "HELLO 3\r\nHGETALL none\r\n", "HELLO 4\r\n", "HELLO 3 SETNAME \"a b\"\r\n"},
		"pipeline":           {"SET a 1\r\nINCR a\r\nGET a\r\nPING\r\nECHO x\r\nNOSUCH a b\r\nGET\r\nLRANGE none 0 -1\r\n"},
		"quit":               {"SET a 1\r\nQUIT\r\nGET a\r\n"},
		"quit before":        {"QUIT\r\n"},
		"reset":              {"SELECT 3\r\nHELLO 3\r\nCLIENT SETNAME x\r\nSET a 1\r\nRESET\r\nGET a\r\nCLIENT GETNAME\r\n", "RESET x\r\n", "MULTI\r\nRESET\r\nEXEC\r\n"},
		"auth":               {"GET a\r\n", "AUTH x\r\nAUTH default x\r\nAUTH bob x\r\nAUTH a b c\r\nAUTH\r\nGET a\r\n", "HELLO 3 AUTH bob x\r\n", "HELLO 3 AUTH default x\r\n"},
		"transaction":        {"MULTI\r\n", "SET a 1\r\n", "INCR a\r\n", "EXEC\r\n", "MULTI\r\nPING\r\nSET a 5\r\nEXEC\r\nGET a\r\n"},
		"transaction ends":   {"MULTI\r\nSET a 1\r\nDISCARD\r\nGET a\r\n", "EXEC\r\nDISCARD\r\nEXEC x\r\nDISCARD x\r\nMULTI x\r\n", "MULTI\r\nSET a 1\r\nMULTI\r\nWATCH a\r\nEXEC\r\n", "MULTI\r\nQUIT\r\n"},
		"transaction errors": {"MULTI\r\nNOSUCH\r\nSET a 1\r\nEXEC\r\n", "MULTI\r\nSET a\r\nSET a 1\r\nEXEC\r\nGET a\r\n", "MULTI\r\nEXEC x\r\nEXEC\r\n", "MULTI\r\nSET a 1\r\nEXEC x\r\nEXEC\r\n", "MULTI\r\nPING a b\r\nPING\r\nEXEC\r\n"},
		"without keys":       {"MULTI\r\nPING\r\nECHO x\r\nEXEC\r\n", "MULTI\r\nEXEC\r\n", "MULTI\r\nPING\r\nDISCARD\r\n"},
		"watch":              {"SET a 1\r\nWATCH a\r\nSET a 2\r\nMULTI\r\nEXEC\r\n", "WATCH a\r\nSET a 3\r\nMULTI\r\nPING\r\nEXEC\r\n", "WATCH a\r\nSET a 4\r\nMULTI\r\nDISCARD\r\nMULTI\r\nGET a\r\nEXEC\r\n", "WATCH a\r\nSET a 5\r\nUNWATCH\r\nMULTI\r\nGET a\r\nEXEC\r\n"},
		"select in multi":    {"MULTI\r\nSELECT 3\r\nSET a x\r\nSELECT 99\r\nEXEC\r\nGET a\r\n", "RESET\r\nMULTI\r\nSET a y\r\nSELECT 4\r\nDISCARD\r\nGET a\r\n", "MULTI\r\nSELECT 5\r\nNOSUCH\r\nEXEC\r\nSET here 1\r\nSELECT 0\r\nGET here\r\n"},
		"reply off":          {"SET a 1\r\nCLIENT REPLY OFF\r\nGET a\r\nPING\r\nNOSUCH\r\nCLIENT REPLY bad\r\nCLIENT REPLY ON\r\nGET a\r\n"},
		"reply skip":         {"SET a 1\r\nCLIENT REPLY SKIP\r\nGET a\r\nGET a\r\n", "CLIENT REPLY SKIP\r\nCLIENT REPLY SKIP\r\nPING\r\nPING\r\n", "CLIENT REPLY SKIP\r\nCLIENT REPLY ON\r\nPING\r\n", "CLIENT REPLY\r\nCLIENT REPLY bad\r\n"},
		"reply of reset":     {"CLIENT REPLY SKIP\r\nRESET\r\nPING\r\n", "CLIENT REPLY OFF\r\nRESET\r\nPING\r\n", "MULTI\r\nGET a\r\nCLIENT REPLY SKIP\r\nRESET\r\nPING\r\n"},
		"refused at once":    {"WATCH\r\n", "MULTI\r\nGET lock:none\r\nEXEC\r\n", "GET lock:none\r\nGET a\r\n"},
		"subscribe":          {"SUBSCRIBE a b a\r\n", "PSUBSCRIBE x*\r\n", "GET k\r\n", "HELLO 3\r\n", "SET lock:a 1 NX\r\nWATCH lock:a\r\nDEL lock:a k\r\nRENAME lock:a k\r\nSCRIPT KILL\r\nEVAL x 1 lock:a\r\n", "MULTI\r\nEXEC\r\nINFO\r\nAUTH x\r\nCLIENT REPLY ON\r\nSELECT 1\r\nSCRIPT LOAD x\r\n", "PING\r\nPING hi\r\n", "UNSUBSCRIBE\r\nPING\r\n", "PUNSUBSCRIBE\r\nPING\r\nSET k 1\r\nGET k\r\n"},
		"unsubscribe behind": {"SET a 1\r\nGET a\r\nUNSUBSCRIBE\r\nGET a\r\nPUNSUBSCRIBE x y\r\nGET a\r\n", "HELLO 3\r\nGET a\r\nUNSUBSCRIBE x\r\nGET none\r\n"},
		"subscribe refuses":  {"SUBSCRIBE a\r\nSET lock:a\r\nGET lock:a b\r\nDEL\r\nDEL a lock:a\r\nRENAME a lock:a b\r\nWATCH\r\nMULTI x\r\nEXEC x\r\nDISCARD x\r\nINFO\r\nOBJECT nosuch lock:a\r\nMOVE lock:a\r\nCOPY lock:a\r\n", "CLIENT ID x\r\nCLIENT KILL\r\nCLIENT TRACKING\r\nCLIENT nosuch\r\nSCRIPT LOAD\r\nSCRIPT EXISTS\r\nSCRIPT KILL x\r\nSELECT\r\nHELLO 3\r\nAUTH\r\nECHO\r\nMIGRATE lock:a\r\nFCALL x\r\nPING a b\r\n"},
		"subscribe pipeline": {"SUBSCRIBE a b\r\nPSUBSCRIBE p\r\nSUBSCRIBE c\r\nUNSUBSCRIBE\r\nPUNSUBSCRIBE\r\nGET k\r\nSUBSCRIBE\r\nUNSUBSCRIBE\r\nPUNSUBSCRIBE\r\nSUNSUBSCRIBE\r\nSSUBSCRIBE s t\r\nSUNSUBSCRIBE\r\nGET k\r\n"},
		"subscribe RESP3":    {"HELLO 3\r\nSUBSCRIBE a b\r\nGET k\r\nPUBLISH a x\r\nPUBLISH nobody x\r\nUNSUBSCRIBE\r\nPING\r\nHELLO 2\r\nPING\r\n", "SUBSCRIBE a\r\nGET k\r\n", "UNSUBSCRIBE\r\nHELLO 3\r\nSUBSCRIBE a\r\nHELLO 2\r\nPING\r\nGET a\r\n"},
		"subscribe reset":    {"SUBSCRIBE a\r\n", "RESET\r\n", "GET a\r\nSUBSCRIBE a\r\nUNSUBSCRIBE a\r\nGET a\r\n"},
		"subscribe silently": {"CLIENT REPLY OFF\r\nSUBSCRIBE a b\r\n", "PING\r\nGET a\r\nUNSUBSCRIBE a\r\n", "UNSUBSCRIBE\r\nCLIENT REPLY ON\r\nPING\r\n"},
		"subscribe and quit": {"SUBSCRIBE a\r\nQUIT\r\n"},
		"tracking":           {"HELLO 3\r\nCLIENT TRACKING ON\r\nGET a\r\nSET a 1\r\nGET a\r\nSET a 2\r\nPING\r\n", "MULTI\r\nGET a\r\nSET a 3\r\nEXEC\r\nPING\r\n"},
		"monitor":            {"MONITOR\r\n", "PING\r\n", "CLIENT SETNAME x\r\n", "GET a\r\n", "RESET\r\n", "GET a\r\n"},
		"script":             {"EVAL \"return 1\" 0\r\nEVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0\r\nEVALSHA 0000000000000000000000000000000000000000 0\r\n", "SCRIPT LOAD \"return 2\"\r\nSCRIPT EXISTS 7f923f79fe76194c868d7e1d0820de36700eb649 0000000000000000000000000000000000000000\r\nSCRIPT FLUSH\r\nSCRIPT EXISTS 7f923f79fe76194c868d7e1d0820de36700eb649\r\n", "SCRIPT LOAD \"return (\"\r\nSCRIPT FLUSH x\r\nSCRIPT EXISTS\r\nSCRIPT KILL\r\nSCRIPT NOSUCH\r\nSCRIPT\r\n"},
		"no such subcommand": {"MULTI\r\nGET lock:a\r\nOBJECT nosuch lock:a\r\nCONFIG nosuch\r\nCLIENT \"a\\nb\" x\r\nEXEC\r\n", "MULTI\r\nOBJECT nosuch\r\nEXEC\r\nOBJECT nosuch lock:a\r\n"},
		"nested replies":     {"EVAL \"return {1,{2,{3,'x'}},{}}\" 0\r\nCOMMAND COUNT\r\nXADD s 1-1 f v\r\nXRANGE s - +\r\n", "HELLO 3\r\nEVAL \"redis.setresp(3); return {double=3.5}\" 0\r\nCONFIG GET maxmemory\r\nDEBUG PROTOCOL attrib\r\nPING\r\n"},
		"protocol error":     {"SET a 1\r\n*1\r\nx\r\nGET a\r\n"},
		"error in a pipe":    {"MULTI\r\nSUBSCRIBE a\r\nGET a\r\nINCR a\r\n*1\r\nx\r\nGET a\r\n"},
		"in multi":           {"MULTI\r\nSUBSCRIBE a\r\n", "PING\r\n", "EXEC\r\n", "UNSUBSCRIBE a\r\n", "PING\r\n"},
		"hello in multi":     {"MULTI\r\nHELLO 3\r\nEXEC\r\n", "GET a\r\n", "RESET\r\nGET a\r\n"},
		"no reply in multi":  {"MULTI\r\nGET a\r\nCLIENT REPLY OFF\r\nEXEC\r\nPING\r\nCLIENT REPLY ON\r\n"},
	}
	for name, steps := range conversations {
		for connections, p := range map[string]*testProxy{"own": own, "shared": sharing} {
			t.Run(name+"/"+connections, func(t *testing.T) {
				compareWithRedis(t, redis, p, steps...)
				compareWithRedis(t, redis, p, append([]string{"GET opened\r\n"}, steps...)...)
				compareWithRedis(t, redis, p, strings.Join(steps, ""))
			})
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

package proxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/redlock/resp"
)

// TestHostileBytesAreAnsweredAsByRedis sends each odd and malformed input to a
// client's session, cut at every place, and to a Redis server. The answers must
// be the same to the last byte, and so must be who hangs up.
func TestHostileBytesAreAnsweredAsByRedis(t *testing.T) {
	open, locked := proxytest.StartRedis(t), proxytest.StartRedis(t, "--requirepass", proxytest.Password)
	openProxy := startTestProxy(t, open)
	lockedProxy := startTestProxy(t, open, func(c *testConfig) { c.Users = config.NewAccounts(config.Auth{Password: proxytest.Password}, 0) })
	for _, input := range proxytest.Inputs() {
		server, p := open, openProxy
		if input.Locked {
			server, p = locked, lockedProxy
		}
		hangsUp := input.Err != ""
		want := server.Exchange(t, []byte(input.Bytes), nil, hangsUp)
		places := proxytest.Cuts(input.Bytes)
		if len(places) > 100 {
			places = places[:100]
		}
		for _, cut := range places {
			if got := p.exchange(t, input.Bytes[:cut], input.Bytes[cut:], hangsUp); !bytes.Equal(got, want) {
				t.Errorf("%.100q cut at %d: got %.300q, Redis answers %.300q", input.Bytes, cut, got, want)
				break
			}
		}
	}
	for _, p := range []*testProxy{openProxy, lockedProxy} {
		eventually(t, "nothing is left", func() bool { return p.sessionCount() == 0 && p.env.Budget.InUse() == 0 })
	}
}

// exchange sends an input in two parts and returns all that is answered until
// the connection ends: by the proxy if hangsUp, otherwise by us.
func (p *testProxy) exchange(t *testing.T, first, second string, hangsUp bool) []byte {
	t.Helper()
	near, far := socketPair(t)
	p.clients.Welcome(far)
	defer func() { _ = near.Close() }()
	_ = near.SetDeadline(time.Now().Add(patience))
	for _, part := range []string{first, second} {
		if _, err := io.WriteString(near, part); err != nil && !errors.Is(err, syscall.EPIPE) {
			t.Fatal(err)
		}
	}
	if !hangsUp {
		_ = near.CloseWrite()
	}
	answer, err := io.ReadAll(near)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("after %.100q and %.100q: %.300q and then %v", first, second, answer, err)
	}
	return answer
}

// socketPair is a connection whose answers no reset can overtake.
func socketPair(t *testing.T) (near, far *net.UnixConn) {
	t.Helper()
	files, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*net.UnixConn
	for i, file := range files {
		syscall.CloseOnExec(file)
		end := os.NewFile(uintptr(file), "socket")
		conn, err := net.FileConn(end)
		_ = end.Close()
		if err != nil {
			t.Fatal(err)
		}
		ends[i] = conn.(*net.UnixConn)
	}
	return ends[0], ends[1]
}

// A client that writes byte by byte, for as long as it likes, is answered like
// any other, at a cost that grows with its bytes and no faster.
func TestOneByteWrites(t *testing.T) {
	p := startTestProxy(t, nil)
	near, far := net.Pipe() // a read gets what one write brought
	p.clients.Welcome(far)
	client := &testClient{near, t}
	program := "*1001\r\n$6\r\nEXISTS\r\n" + strings.Repeat("$6\r\nlock:x\r\n", 1000)
	program += strings.Repeat("*0\r\n\r\n*-1\r\n", 1000) + "PING" + strings.Repeat(" ", 60_000) + "\r\n"
	for i := range program {
		client.send(program[i : i+1])
		if i == len(program)/2 {
			p.dial(t).ask("PING\r\n", "+PONG\r\n") // others are served meanwhile
		}
		if strings.HasSuffix(program[:i+1], "lock:x\r\n") && !strings.Contains(program[i:], "lock") {
			client.expect(":0\r\n")
		}
	}
	client.expect("+PONG\r\n")
	_ = near.Close()
}

// Whatever a client sends, it is answered with whole values, and nothing is
// left of it afterwards.
func FuzzSession(f *testing.F) {
	for _, input := range proxytest.Inputs() {
		if len(input.Bytes) < 500 {
			f.Add([]byte(input.Bytes), uint8(9))
		}
	}
	for _, program := range []string{"HELLO 3\r\nMULTI\r\nSET lock:a 1\r\nEXEC\r\n", "SUBSCRIBE lock:a lock:b\r\nUNSUBSCRIBE\r\n", "CLIENT REPLY SKIP\r\nPING\r\nCLIENT REPLY OFF\r\n",
		"CLIENT TRACKING ON BCAST PREFIX a\r\nGET lock:a\r\nCLIENT CACHING YES\r\n", "WATCH lock:a\r\nUNWATCH\r\nRESET\r\n", "EVAL x 1 lock:a b\r\nEVALSHA x 0\r\nSCRIPT LOAD x\r\n",
		"SELECT 3\r\nSELECT -1\r\nAUTH a b\r\nINFO redlock\r\n", "MGET a lock:a\r\nDEL a lock:a\r\nSORT a STORE lock:a\r\n"} {
		f.Add([]byte(program), uint8(20))
	}
	f.Fuzz(func(t *testing.T, input []byte, cut uint8) {
		if bytes.Contains(input, []byte("lock:slow")) || bytes.Contains(input, []byte("lock:panic")) {
			return // which the fake masters understand
		}
		masters := &fakeMasters{}
		p := startTestProxy(t, nil, masters.configure, func(c *testConfig) { c.Limits.Subscriptions = 100 })
		at := min(int(cut), len(input))
		answer := p.exchange(t, string(input[:at]), string(input[at:]), false)
		var scanner resp.Scanner
		for rest := answer; len(rest) > 0; {
			n, done, err := scanner.Scan(rest)
			if err != nil || !done {
				t.Fatalf("%q is answered with %q, in which %q is no whole value (%v)", input, answer, rest, err)
			}
			rest = rest[n:]
		}
		eventually(t, "nothing is left", func() bool { return p.sessionCount() == 0 && p.env.Budget.InUse() == 0 })
		if n := p.counter(t, "redlock_panics_recovered_total", ""); n != 0 {
			t.Fatalf("%q has shown a defect", input)
		}
	})
}

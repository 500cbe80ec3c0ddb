package proxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestHostileBytesAreAnsweredAsByRedis sends each odd and malformed input to a
// client's session, cut at every place, and to a Redis server. The answers must
// be the same to the last byte, and so must be who hangs up.
func TestHostileBytesAreAnsweredAsByRedis(t *testing.T) {
	open, locked := startGuardRedis(t), startGuardRedis(t, "--requirepass", guardPassword)
	openProxy := startTestProxy(t, open)
	lockedProxy := startTestProxy(t, open, func(c *testConfig) { c.users = newAccounts(Auth{Password: guardPassword}) })
	for _, input := range guardInputs() {
		server, p := open, openProxy
		if input.locked {
			server, p = locked, lockedProxy
		}
		hangsUp := input.err != ""
		want := server.exchange(t, []byte(input.bytes), nil, hangsUp)
		places := cuts(input.bytes)
		if len(places) > 100 {
			places = places[:100]
		}
		for _, cut := range places {
			if got := p.exchange(t, input.bytes[:cut], input.bytes[cut:], hangsUp); !bytes.Equal(got, want) {
				t.Errorf("%.100q cut at %d: got %.300q, Redis answers %.300q", input.bytes, cut, got, want)
				break
			}
		}
	}
	for _, p := range []*testProxy{openProxy, lockedProxy} {
		eventually(t, "nothing is left", func() bool { return p.sessionCount() == 0 && p.server.memory.used.Load() == 0 })
	}
}

// exchange sends an input in two parts and returns all that is answered until
// the connection ends: by the proxy if hangsUp, otherwise by us.
func (p *testProxy) exchange(t *testing.T, first, second string, hangsUp bool) []byte {
	t.Helper()
	near, far := socketPair(t)
	p.server.welcome(far)
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
	listener, err := net.Listen("unix", "@redlock-proxy-test-"+strings.ReplaceAll(t.Name(), "/", "-"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	dialled, err := net.Dial("unix", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return dialled.(*net.UnixConn), accepted.(*net.UnixConn)
}

// A client that writes byte by byte, for as long as it likes, is answered like
// any other, at a cost that grows with its bytes and no faster.
func TestOneByteWrites(t *testing.T) {
	p := startTestProxy(t, nil)
	near, far := net.Pipe() // a read gets what one write brought
	p.server.welcome(far)
	client := &testClient{near, t}
	program := "*2000\r\n$6\r\nEXISTS\r\n" + strings.Repeat("$6\r\nlock:x\r\n", 1999)
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

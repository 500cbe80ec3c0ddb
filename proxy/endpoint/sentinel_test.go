package endpoint

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/integration/testca"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// fakeGroup is a server that is its own Sentinel.
type fakeGroup struct {
	net.Listener
	names atomic.Pointer[string] // the address that it names as the master's
	role  string                 // its reply to ROLE
	asked atomic.Int64           // how often it was asked as a Sentinel
}

func startFakeGroup(t *testing.T, role string, config *tls.Config) *fakeGroup {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &fakeGroup{Listener: listener, role: role}
	if config != nil {
		g.Listener = tls.NewListener(listener, config)
	}
	t.Cleanup(func() { _ = g.Close() })
	g.name(g)
	go func() {
		for {
			conn, err := g.Accept()
			if err != nil {
				return
			}
			go g.serve(conn)
		}
	}()
	return g
}

func (g *fakeGroup) name(master *fakeGroup) {
	address := master.Addr().String()
	g.names.Store(&address)
}

// serve ends with the connection.
func (g *fakeGroup) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	var scanner resp.Scanner
	var command []byte
	for buf := make([]byte, 4096); ; {
		n, err := conn.Read(buf)
		if err != nil {
			return
		}
		for unread := buf[:n]; len(unread) > 0; {
			used, done, err := scanner.Scan(unread)
			if err != nil {
				return
			}
			command, unread = append(command, unread[:used]...), unread[used:]
			if !done {
				continue
			}
			if _, err := io.WriteString(conn, g.answer(command)); err != nil {
				return
			}
			command = command[:0]
		}
	}
}

func (g *fakeGroup) answer(command []byte) string {
	switch command = bytes.ToLower(command); {
	case bytes.Contains(command, []byte("sentinel\r\n")):
		g.asked.Add(1)
		host, port, _ := net.SplitHostPort(*g.names.Load())
		return string(resp.AppendCommand(nil, "ip", host, "port", port))
	case bytes.Contains(command, []byte("role\r\n")):
		return g.role
	case bytes.Contains(command, []byte("hello\r\n")):
		return "-ERR unknown command 'hello'\r\n"
	case bytes.Contains(command, []byte("echo\r\n")):
		return string(resp.AppendBulk(nil, g.Addr().String()))
	}
	return wire.OK
}

const (
	roleMaster  = "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"
	roleReplica = "*5\r\n$5\r\nslave\r\n$6\r\nmaster\r\n:1\r\n$9\r\nconnected\r\n:0\r\n"
)

// dialGroup tells whose connection one gets.
func dialGroup(t *testing.T, url string) (address string, err error) {
	t.Helper()
	server, err := Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	return dialEndpoint(t, server)
}

func dialEndpoint(t *testing.T, server Endpoint) (address string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	conn, err := server.Dial(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(conn, "*2\r\n$4\r\nECHO\r\n$1\r\nx\r\n"); err != nil {
		t.Fatal(err)
	}
	replies, err := resp.NewReader(conn, 512, maxAnswer).Next(nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(replies[0]), "\r\n")[1], nil
}

func TestDialTheMasterThatSentinelsName(t *testing.T) {
	master, replica := startFakeGroup(t, roleMaster, nil), startFakeGroup(t, roleReplica, nil)
	untold := startFakeGroup(t, "-NOPERM this user has no permissions to run the 'role' command\r\n", nil)
	gone := startFakeGroup(t, roleMaster, nil)
	_ = gone.Close()
	at := func(g *fakeGroup) string { return g.Addr().String() }
	for _, row := range []struct {
		name, url, want string
	}{
		{"the master", "sentinel://u:p@" + at(master) + "/m", at(master)},
		{"one Sentinel is gone", "sentinel://" + at(gone) + "," + at(master) + "/m", at(master)},
		{"a replica is named", "sentinel://" + at(replica) + "/m", ""},
		{"a server that does not tell its role", "sentinel://" + at(untold) + "/m", at(untold)},
		{"no Sentinel is there", "sentinel://" + at(gone) + "/m", ""},
	} {
		got, err := dialGroup(t, row.url)
		if got != row.want || (err == nil) != (row.want != "") {
			t.Errorf("%s: connected to %q (%v), want %q", row.name, got, err, row.want)
		}
	}
}

// An answer holds for a moment, and a server that is gone or was demoted ends it.
func TestSentinelsAreAskedAgainWhereTheyLedToNoMaster(t *testing.T) {
	old, promoted := startFakeGroup(t, roleMaster, nil), startFakeGroup(t, roleMaster, nil)
	server, err := Parse("sentinel://" + old.Addr().String() + "," + promoted.Addr().String() + "/m")
	if err != nil {
		t.Fatal(err)
	}
	promoted.name(old)
	began := time.Now()
	for range 10 {
		if got, err := dialEndpoint(t, server); got != old.Addr().String() {
			t.Fatalf("connected to %q (%v)", got, err)
		}
	}
	if n := old.asked.Load(); n > 5+int64(time.Since(began)/answerLifetime) {
		t.Errorf("a Sentinel was asked %d times for 10 connections", n)
	}
	promoted.name(promoted)
	_ = old.Close()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if got, _ := dialEndpoint(t, server); got == promoted.Addr().String() {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the promoted one is not dialled")
		}
	}
}

// TLS is to the Sentinels and to the server, which show the names by which they
// are dialled.
func TestSentinelsOverTLS(t *testing.T) {
	authority := testca.New(t)
	config := &tls.Config{Certificates: []tls.Certificate{authority.Issue(time.Hour).Load(t)}}
	g := startFakeGroup(t, roleMaster, config)
	url := "sentinels://" + g.Addr().String() + "/m"
	if got, err := dialGroup(t, url+"?ca_cert_file="+authority.File); got != g.Addr().String() {
		t.Errorf("connected to %q (%v)", got, err)
	}
	if got, err := dialGroup(t, url); err == nil {
		t.Errorf("a server that nobody vouches for is believed: %q", got)
	}
	if got, err := dialGroup(t, url+"?server_name=elsewhere&ca_cert_file="+authority.File); err == nil {
		t.Errorf("a server of another name is believed: %q", got)
	}
}

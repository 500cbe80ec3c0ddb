package integration

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// tlsCluster is a cluster in which everything is said over TLS and everybody
// has to show a certificate. The tests look at the servers in the clear.
type tlsCluster struct {
	*cluster
	authority     *authority
	shown, client certificate // by the proxy to its clients; by these
	options       proxyOptions
	port          int
}

func startTLSCluster(t *testing.T) *tlsCluster {
	t.Helper()
	c := &tlsCluster{cluster: &cluster{}, authority: newAuthority(t), port: freePort(t)}
	server, proxy := c.authority.issue(t), c.authority.issue(t)
	c.shown, c.client = c.authority.issue(t), c.authority.issue(t)
	query := fmt.Sprintf("?ca_cert_file=%s&cert_file=%s&key_file=%s&server_name=localhost", c.authority.file, proxy.certFile, proxy.keyFile)
	start := func(name string) (*redisServer, string) {
		port := freePort(t)
		r := startRedis(t, name, "--tls-port", fmt.Sprint(port), "--tls-cert-file", server.certFile, "--tls-key-file", server.keyFile,
			"--tls-ca-cert-file", c.authority.file, "--tls-auth-clients", "yes")
		return r, fmt.Sprintf("rediss://127.0.0.1:%d%s", port, query)
	}
	c.upstream, c.options.upstream = start("upstream")
	for i := range masterCount {
		master, url := start(fmt.Sprintf("master%d", i+1))
		c.masters, c.options.masters = append(c.masters, master), append(c.options.masters, url)
	}
	c.options.more = fmt.Sprintf("tls: {listen: 127.0.0.1:%d, cert_file: %s, key_file: %s, ca_cert_file: %s}\n",
		c.port, c.shown.certFile, c.shown.keyFile, c.authority.file)
	return c
}

// cli is an unmodified redis-cli that speaks TLS.
func (c *tlsCluster) cli(command ...string) string {
	args := []string{"-h", "localhost", "-p", fmt.Sprint(c.port), "--tls", "--cacert", c.authority.file,
		"--cert", c.client.certFile, "--key", c.client.keyFile}
	return redisCLI(append(args, command...)...)
}

func (c *tlsCluster) dialTLS(t *testing.T) *wire {
	t.Helper()
	conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", c.port), c.authority.config(t, c.client))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &wire{conn: conn, in: bufio.NewReader(conn)}
}

// Locks and everything else work over TLS from the client to the last server,
// with two of five masters hung as well, and with messages that masters send.
func TestTLS(t *testing.T) {
	c := startTLSCluster(t)
	c.proxy = startProxy(t, c.options)
	for _, row := range []struct{ command, want string }{
		{"SET lock:a token NX PX 60000", "OK"},
		{"SET lock:a other NX PX 60000", ""},
		{"GET lock:a", "token"},
		{"SET app 1", "OK"},
		{"GET app", "1"},
		{"DEL lock:a", "1"},
	} {
		if got := c.cli(strings.Fields(row.command)...); got != row.want {
			t.Errorf("%s: %q, want %q", row.command, got, row.want)
		}
	}
	for what, got := range map[string]string{
		"without a certificate": redisCLI("-h", "localhost", "-p", fmt.Sprint(c.port), "--tls", "--cacert", c.authority.file, "PING"),
		"in the clear":          redisCLI("-p", fmt.Sprint(c.port), "PING"),
	} {
		if strings.Contains(got, "PONG") {
			t.Errorf("a client %s was served", what)
		}
	}

	client := redis.NewClient(&redis.Options{Addr: fmt.Sprintf("127.0.0.1:%d", c.port), TLSConfig: c.authority.config(t, c.client), MaxRetries: -1, ReadTimeout: patience})
	t.Cleanup(func() { client.Close() })
	listens := client.Subscribe(t.Context(), "redisson_lock__channel:{lock:b}")
	defer listens.Close()
	if _, err := listens.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.masters[0].pause()
	c.masters[1].pause()
	for i := range 20 {
		token := fmt.Sprintf("a token of many bytes %d", i)
		if ok, err := client.SetNX(t.Context(), "lock:b", token, time.Minute).Result(); !ok || err != nil {
			t.Fatalf("acquire %d: %v %v", i, ok, err)
		}
		if n, err := client.Eval(t.Context(), releaseScripts["one line"], []string{"lock:b"}, token).Int(); n != 1 || err != nil {
			t.Fatalf("release %d: %v %v", i, n, err)
		}
	}
	c.masters[0].resume()
	c.masters[1].resume()
	c.waitGone(t, "lock:b")
	publish := "redis.call('publish', ARGV[1], 'free') return redis.call('del', KEYS[1])"
	if err := client.Eval(t.Context(), publish, []string{"lock:b"}, "redisson_lock__channel:{lock:b}").Err(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if message, err := listens.ReceiveMessage(ctx); err != nil || message.Payload != "free" {
		t.Errorf("received %v, %v", message, err)
	}
}

// A large reply, a client that half-closes, and one that leaves while it is
// blocked: an element pushed later is nobody's but the next one's.
func TestTLSConnectionsEnd(t *testing.T) {
	c := startTLSCluster(t)
	c.proxy = startProxy(t, c.options)
	w := c.dialTLS(t)
	large := strings.Repeat("x", 8<<20)
	if reply, err := w.do("SET", "large", large); string(reply) != "+OK\r\n" {
		t.Fatal(string(reply), err)
	}
	for range 3 {
		if reply, err := w.do("GET", "large"); len(reply) < len(large) || err != nil {
			t.Fatalf("%d bytes, %v", len(reply), err)
		}
	}
	if err := w.send(append(encode("SET", "last", "1"), encode("GET", "last")...)); err != nil {
		t.Fatal(err)
	}
	if err := w.conn.(*tls.Conn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"+OK\r\n", "$1\r\n1\r\n"} {
		if reply, err := w.read(); string(reply) != want {
			t.Errorf("after a half-close: %q %v, want %q", reply, err, want)
		}
	}
	blocked := c.dialTLS(t)
	if err := blocked.send(encode("BLPOP", "list", "0")); err != nil {
		t.Fatal(err)
	}
	waitBlocked := func(number int) {
		waitFor(t, fmt.Sprintf("%d clients are blocked", number), func() error {
			info := c.upstream.direct.Info(t.Context(), "clients").Val()
			if !strings.Contains(info, fmt.Sprintf("blocked_clients:%d\r", number)) {
				return errors.New(info)
			}
			return nil
		})
	}
	waitBlocked(1)
	blocked.conn.Close()
	waitBlocked(0)
	if n := c.upstream.direct.RPush(t.Context(), "list", "x").Val(); n != 1 {
		t.Errorf("the list has %d elements", n)
	}
}

// A certificate is renewed under the proxy's feet: who is connected stays, who
// comes after a signal sees the new one. A master's name that is not the one
// in its certificate is found by -check.
func TestTLSRenewalAndCheck(t *testing.T) {
	c := startTLSCluster(t)
	c.proxy = startProxy(t, c.options)
	stays := c.dialTLS(t)
	serial := func() string {
		return c.dialTLS(t).conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	before := serial()
	c.authority.renew(t, c.shown)
	c.proxy.hangUp(t, "applied")
	if serial() == before {
		t.Error("after a signal the old certificate is shown")
	}
	if reply, err := stays.do("PING"); string(reply) != "+PONG\r\n" {
		t.Errorf("who was connected: %q %v", reply, err)
	}
	c.proxy.reload(t, c.options, "applied")
	if reply, err := stays.do("PING"); string(reply) != "+PONG\r\n" {
		t.Errorf("after a reload: %q %v", reply, err)
	}
	run := func(flag string) (string, error) {
		out, err := exec.Command(c.proxy.binary, flag, "-config", c.proxy.flags[1]).CombinedOutput()
		return string(out), err
	}
	if text, err := run("-check"); err != nil || !strings.Contains(text, "certificate "+c.shown.certFile) || strings.Count(text, " (TLS)") != 6 {
		t.Errorf("-check: %v\n%s", err, text)
	}
	if text, err := run("-healthcheck"); err != nil {
		t.Errorf("-healthcheck: %v\n%s", err, text)
	}
	wrong := c.options
	wrong.masters = append([]string{strings.Replace(wrong.masters[0], "server_name=localhost", "server_name=elsewhere", 1)}, wrong.masters[1:]...)
	c.proxy.configure(t, wrong)
	if text, err := run("-check"); err == nil || !strings.Contains(text, "not elsewhere") {
		t.Errorf("-check with another name: %v\n%s", err, text)
	}
	if err := os.WriteFile(c.shown.keyFile, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := run("-check"); err == nil || !strings.Contains(text, "tls.cert_file: ") || strings.Contains(text, "nonsense") {
		t.Errorf("-check with a broken key: %v\n%s", err, text)
	}
	if text, err := run("-healthcheck"); err != nil {
		t.Errorf("-healthcheck while the key is being renewed: %v\n%s", err, text)
	}
	c.proxy.hangUp(t, "refused")
	if serial() == before {
		t.Error("the first certificate is shown again")
	}
}

// TestTLSByteForByte holds both planes, over TLS from end to end, against a
// plain Redis.
func TestTLSByteForByte(t *testing.T) {
	c := startTLSCluster(t)
	c.proxy = startProxy(t, c.options)
	door := c.plainDoor(t)
	plain := startRedis(t, "plain")
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			d := differential{plain: plain, addr: door, protocol: protocol, states: c.waitQuorumStates}
			d.run(t, corpus())
			var moved []scenario
			for i, each := range exampleScenarios(t, plain) {
				if i%7 == 0 && !each.declined() { // the others are like it, on the way to the upstream
					moved = append(moved, each.onUpstream())
				}
			}
			d.states = nil
			d.run(t, moved)
		})
	}
}

// plainDoor listens in the clear and passes all on over TLS, for clients of the
// suite that speak none.
func (c *tlsCluster) plainDoor(t *testing.T) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	config := c.authority.config(t, c.client)
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			to, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", c.port), config)
			if err != nil {
				from.Close()
				continue
			}
			pass := func(to, from net.Conn) {
				_, _ = io.Copy(to, from)
				to.Close()
				from.Close()
			}
			go pass(to, from)
			go pass(from, to)
		}
	}()
	return listener.Addr().String()
}

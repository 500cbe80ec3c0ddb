package operation

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
	"regexp"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/corpus"
	"redlock-proxy/integration/rig"
	"redlock-proxy/integration/testca"

	"github.com/redis/go-redis/v9"
)

// tlsCluster is a cluster in which every connection uses TLS and both sides must show a
// certificate. Only the tests look at the servers without TLS.
type tlsCluster struct {
	*rig.Cluster
	authority     *testca.Authority
	shown, client testca.Certificate // the proxy's, for its clients; the clients'
	options       rig.Options
	port          int
}

func startTLSCluster(t *testing.T) *tlsCluster {
	t.Helper()
	c := &tlsCluster{Cluster: &rig.Cluster{}, authority: testca.New(t), port: rig.FreePort(t)}
	server, proxy := c.authority.Issue(certificateLife), c.authority.Issue(certificateLife)
	c.shown, c.client = c.authority.Issue(certificateLife), c.authority.Issue(certificateLife)
	query := fmt.Sprintf("?ca_cert_file=%s&cert_file=%s&key_file=%s&server_name=localhost", c.authority.File, proxy.CertFile, proxy.KeyFile)
	start := func(name string) (*rig.Server, string) {
		port := rig.FreePort(t)
		r := rig.StartServer(t, name, "--tls-port", fmt.Sprint(port), "--tls-cert-file", server.CertFile, "--tls-key-file", server.KeyFile,
			"--tls-ca-cert-file", c.authority.File, "--tls-auth-clients", "yes")
		return r, fmt.Sprintf("rediss://127.0.0.1:%d%s", port, query)
	}
	c.Upstream, c.options.Upstream = start("upstream")
	for i := range rig.MasterCount {
		master, url := start(fmt.Sprintf("master%d", i+1))
		c.Masters, c.options.Masters = append(c.Masters, master), append(c.options.Masters, url)
	}
	c.options.More = fmt.Sprintf("tls: {listen: 127.0.0.1:%d, cert_file: %s, key_file: %s, ca_cert_file: %s}\n",
		c.port, c.shown.CertFile, c.shown.KeyFile, c.authority.File)
	return c
}

// certificateLife is long enough that the proxy does not warn of the end.
const certificateLife = 60 * 24 * time.Hour

// clientConfig is the TLS configuration of a client that shows the clients' certificate.
func (c *tlsCluster) clientConfig(t testing.TB) *tls.Config {
	t.Helper()
	return &tls.Config{RootCAs: c.authority.Pool(), ServerName: "localhost", Certificates: []tls.Certificate{c.client.Load(t)}}
}

// cli is an unmodified redis-cli that uses TLS.
func (c *tlsCluster) cli(command ...string) string {
	args := []string{"-h", "localhost", "-p", fmt.Sprint(c.port), "--tls", "--cacert", c.authority.File,
		"--cert", c.client.CertFile, "--key", c.client.KeyFile}
	return rig.RedisCLI(append(args, command...)...)
}

func (c *tlsCluster) dialTLS(t *testing.T) *rig.Wire {
	t.Helper()
	conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", c.port), c.clientConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &rig.Wire{Conn: conn, In: bufio.NewReader(conn)}
}

// turnedAway is what redis-cli says, which may find the end before or after the reason.
var turnedAway = regexp.MustCompile(`Server closed the connection|certificate required|Connection reset by peer`)

// Locks and all other commands work over TLS from the client to the last server, also with
// two of five masters hung, and with messages that masters push.
func TestTLS(t *testing.T) {
	t.Parallel()
	c := startTLSCluster(t)
	c.Proxy = rig.StartProxy(t, c.options)
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
		"without a certificate": rig.RedisCLI("-h", "localhost", "-p", fmt.Sprint(c.port), "--tls", "--cacert", c.authority.File, "PING"),
		"in the clear":          rig.RedisCLI("-p", fmt.Sprint(c.port), "PING"),
	} {
		if !turnedAway.MatchString(got) {
			t.Errorf("a client %s was not turned away: %q", what, got)
		}
	}

	client := redis.NewClient(&redis.Options{Addr: fmt.Sprintf("127.0.0.1:%d", c.port), TLSConfig: c.clientConfig(t), MaxRetries: -1, ReadTimeout: rig.Patience})
	t.Cleanup(func() { client.Close() })
	listens := client.Subscribe(t.Context(), "redisson_lock__channel:{lock:b}")
	defer listens.Close()
	if _, err := listens.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Masters[0].Pause()
	c.Masters[1].Pause()
	for i := range 20 {
		token := fmt.Sprintf("a token of many bytes %d", i)
		if ok, err := client.SetNX(t.Context(), "lock:b", token, time.Minute).Result(); !ok || err != nil {
			t.Fatalf("acquire %d: %v %v", i, ok, err)
		}
		if n, err := client.Eval(t.Context(), corpus.ReleaseScripts["one line"], []string{"lock:b"}, token).Int(); n != 1 || err != nil {
			t.Fatalf("release %d: %v %v", i, n, err)
		}
	}
	c.Masters[0].Resume()
	c.Masters[1].Resume()
	c.WaitGone(t, "lock:b")
	publish := "redis.call('publish', ARGV[1], 'free') return redis.call('del', KEYS[1])"
	if err := client.Eval(t.Context(), publish, []string{"lock:b"}, "redisson_lock__channel:{lock:b}").Err(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
	defer cancel()
	if message, err := listens.ReceiveMessage(ctx); err != nil || message.Payload != "free" {
		t.Errorf("received %v, %v", message, err)
	}
}

// TLS connections carry a large reply and a half-close. A client leaves while it is blocked:
// the next client gets an element that is pushed later.
func TestTLSConnectionsEnd(t *testing.T) {
	t.Parallel()
	c := startTLSCluster(t)
	c.Proxy = rig.StartProxy(t, c.options)
	w := c.dialTLS(t)
	large := strings.Repeat("x", 8<<20)
	if reply, err := w.Do("SET", "large", large); string(reply) != "+OK\r\n" {
		t.Fatal(string(reply), err)
	}
	for range 3 {
		if reply, err := w.Do("GET", "large"); len(reply) < len(large) || err != nil {
			t.Fatalf("%d bytes, %v", len(reply), err)
		}
	}
	if err := w.Send(append(rig.Encode("SET", "last", "1"), rig.Encode("GET", "last")...)); err != nil {
		t.Fatal(err)
	}
	if err := w.Conn.(*tls.Conn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"+OK\r\n", "$1\r\n1\r\n"} {
		if reply, err := w.Read(); string(reply) != want {
			t.Errorf("after a half-close: %q %v, want %q", reply, err, want)
		}
	}
	blocked := c.dialTLS(t)
	if err := blocked.Send(rig.Encode("BLPOP", "list", "0")); err != nil {
		t.Fatal(err)
	}
	waitBlocked := func(number int) {
		rig.WaitFor(t, fmt.Sprintf("%d clients are blocked", number), func() error {
			info := c.Upstream.Direct.Info(t.Context(), "clients").Val()
			if !strings.Contains(info, fmt.Sprintf("blocked_clients:%d\r", number)) {
				return errors.New(info)
			}
			return nil
		})
	}
	waitBlocked(1)
	blocked.Conn.Close()
	waitBlocked(0)
	if n := c.Upstream.Direct.RPush(t.Context(), "list", "x").Val(); n != 1 {
		t.Errorf("the list has %d elements", n)
	}
}

// A certificate is renewed while the proxy runs. Connected clients stay, and clients that
// connect after a signal see the new certificate. -check detects a master whose name is not
// in its certificate.
func TestTLSRenewalAndCheck(t *testing.T) {
	t.Parallel()
	c := startTLSCluster(t)
	c.Proxy = rig.StartProxy(t, c.options)
	stays := c.dialTLS(t)
	serial := func() string {
		return c.dialTLS(t).Conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	before := serial()
	c.authority.Issue(certificateLife, c.shown)
	c.Proxy.HangUp(t, "applied")
	if serial() == before {
		t.Error("after a signal the old certificate is shown")
	}
	if reply, err := stays.Do("PING"); string(reply) != "+PONG\r\n" {
		t.Errorf("who was connected: %q %v", reply, err)
	}
	c.Proxy.Reload(t, c.options, "applied")
	if reply, err := stays.Do("PING"); string(reply) != "+PONG\r\n" {
		t.Errorf("after a reload: %q %v", reply, err)
	}
	run := func(flag string) (string, error) {
		out, err := exec.Command(c.Proxy.Binary, flag, "-config", c.Proxy.Flags[1]).CombinedOutput()
		return string(out), err
	}
	if text, err := run("-check"); err != nil || !strings.Contains(text, c.shown.CertFile+" until ") || strings.Count(text, " (TLS)") != 6 {
		t.Errorf("-check: %v\n%s", err, text)
	}
	if text, err := run("-healthcheck"); err != nil {
		t.Errorf("-healthcheck: %v\n%s", err, text)
	}
	wrong := c.options
	wrong.Masters = append([]string{strings.Replace(wrong.Masters[0], "server_name=localhost", "server_name=elsewhere", 1)}, wrong.Masters[1:]...)
	c.Proxy.Configure(t, wrong)
	if text, err := run("-check"); err == nil || !strings.Contains(text, "not elsewhere") {
		t.Errorf("-check with another name: %v\n%s", err, text)
	}
	if err := os.WriteFile(c.shown.KeyFile, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := run("-check"); err == nil || !strings.Contains(text, "tls.cert_file: ") || strings.Contains(text, "nonsense") {
		t.Errorf("-check with a broken key: %v\n%s", err, text)
	}
	if text, err := run("-healthcheck"); err != nil {
		t.Errorf("-healthcheck while the key is being renewed: %v\n%s", err, text)
	}
	c.Proxy.HangUp(t, "refused")
	if serial() == before {
		t.Error("the first certificate is shown again")
	}
}

// TestTLSByteForByte compares both planes, over TLS from end to end, with a plain Redis.
func TestTLSByteForByte(t *testing.T) {
	t.Parallel()
	c := startTLSCluster(t)
	c.Proxy = rig.StartProxy(t, c.options)
	door := c.plainDoor(t)
	plain := rig.StartServer(t, "plain")
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			d := corpus.Differential{Plain: plain, Addr: door, Protocol: protocol, States: c.WaitQuorumStates}
			d.Run(t, corpus.All())
			var moved []corpus.Scenario
			for i, each := range corpus.Examples(t, plain) {
				if i%7 == 0 && !each.Declined() { // a sample is enough for the way to the upstream
					moved = append(moved, each.OnUpstream())
				}
			}
			d.States = nil
			d.Run(t, moved)
		})
	}
}

// plainDoor listens without TLS and passes everything on over TLS. It is for clients of the
// suite that do not know TLS.
func (c *tlsCluster) plainDoor(t *testing.T) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	config := c.clientConfig(t)
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

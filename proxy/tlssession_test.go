package proxy

import (
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/testca"
	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/proxy/handler"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/wire"
)

// tlsTest is a proxy whose clients come over TLS.
type tlsTest struct {
	*testProxy
	t         *testing.T
	authority *testca.Authority
	shown     testca.Certificate
	address   string
	files     *endpoint.TLS
}

func startOverTLS(t *testing.T, redis *proxytest.Redis, authClients string, configure ...func(*testConfig)) *tlsTest {
	t.Helper()
	p := &tlsTest{t: t, authority: testca.New(t)}
	p.shown = p.authority.Issue(30 * 24 * time.Hour)
	options := endpoint.TLSOptions{CertFile: p.shown.CertFile, KeyFile: p.shown.KeyFile, CACertFile: p.authority.File, AuthClients: authClients}
	var err error
	if p.files, err = endpoint.OpenTLS(options); err != nil {
		t.Fatal(err)
	}
	p.testProxy = startTestProxy(t, redis, configure...)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.address = listener.Addr().String()
	ended := make(chan error, 1)
	go func() { ended <- p.clients.Serve(handler.OverTLS(listener, func() *endpoint.TLS { return p.files })) }()
	t.Cleanup(func() {
		p.clients.Shutdown(t.Context())
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return p
}

func (p *tlsTest) config(shown ...tls.Certificate) *tls.Config {
	return &tls.Config{RootCAs: p.authority.Pool(), ServerName: "localhost", Certificates: shown}
}

func (p *tlsTest) dialTLS(config *tls.Config) *testClient {
	p.t.Helper()
	conn, err := tls.Dial("tcp", p.address, config)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = conn.Close() })
	return &testClient{conn, p.t}
}

func TestClientCertificates(t *testing.T) {
	stranger := testca.New(t).Issue(time.Hour).Load(t)
	for _, row := range []struct {
		auth             string
		none, known, bad bool
	}{
		{"no", true, true, true},
		{"optional", true, true, false},
		{"yes", false, true, false},
	} {
		p := startOverTLS(t, nil, row.auth)
		known := p.authority.Issue(time.Hour).Load(t)
		for what, try := range map[string]struct {
			shown  []tls.Certificate
			served bool
		}{"none": {nil, row.none}, "a known one": {[]tls.Certificate{known}, row.known}, "a stranger's": {[]tls.Certificate{stranger}, row.bad}} {
			config := p.config(try.shown...)
			if len(try.shown) > 0 { // also where it is not asked for by its authority
				config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &try.shown[0], nil }
			}
			if served := p.serves(config); served != try.served {
				t.Errorf("auth_clients %s, certificate %s: served is %v", row.auth, what, served)
			}
		}
	}
}

// serves tells whether a client with such a configuration is answered.
func (p *tlsTest) serves(config *tls.Config) bool {
	conn, err := tls.Dial("tcp", p.address, config)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	reply := make([]byte, 7)
	n, _ := io.ReadFull(conn, reply)
	return string(reply[:n]) == wire.Pong
}

// A client that speaks no TLS, or an old version, or does not trust our certificate, is
// counted and not served. A silent client delays nobody.
func TestFailedHandshakes(t *testing.T) {
	log := &proxytest.Log{}
	p := startOverTLS(t, nil, "no", func(c *testConfig) { c.log = newTextLog(log) })
	silent, err := net.Dial("tcp", p.address)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	eventually(t, "the silent client has its session", func() bool { return p.sessionCount() == 1 })
	plain := dialTest(t, "tcp", p.address)
	plain.send("PING\r\n")
	if got, _ := io.ReadAll(plain); strings.Contains(string(got), "PONG") {
		t.Error("a client in the clear was served")
	}
	for what, config := range map[string]*tls.Config{
		"an old version": {RootCAs: p.authority.Pool(), ServerName: "localhost", MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10},
		"another name":   {RootCAs: p.authority.Pool(), ServerName: "elsewhere"},
	} {
		if p.serves(config) {
			t.Errorf("%s was served", what)
		}
	}
	if !p.serves(p.config()) {
		t.Error("nobody is served beside them")
	}
	probe := dialTest(t, "tcp", p.address)
	_ = probe.Close()
	eventually(t, "only the silent one is left", func() bool { return p.sessionCount() == 1 })
	if got := p.counter(t, "redlock_tls_handshakes_failed_total", ""); got != 3 {
		t.Errorf("%v failed handshakes were counted, want 3", got)
	}
	if !strings.Contains(log.String(), "TLS handshake failed") {
		t.Errorf("logged:\n%s", log)
	}
}

// Half-open connections do not keep their places.
func TestSilentHandshakesEnd(t *testing.T) {
	p := startOverTLS(t, nil, "no", func(c *testConfig) { c.Limits.LoginTime = 20 * time.Millisecond })
	for range 10 {
		dialTest(t, "tcp", p.address).send("\x16\x03\x01") // the beginning of a handshake
	}
	eventually(t, "they are counted", func() bool { return p.counter(t, "redlock_tls_handshakes_failed_total", "") == 10 })
	eventually(t, "their sessions have ended", func() bool { return p.sessionCount() == 0 })
}

package proxy

import (
	"crypto/tls"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/testca"
	"redlock-proxy/proxy/config"

	"github.com/prometheus/client_golang/prometheus"
)

// A proxy may be reached over TLS alone. A reload names other files; one that
// names broken ones, or another address, is refused and changes nothing.
func TestReloadOfTLS(t *testing.T) {
	authority := testca.New(t)
	first, second := authority.Issue(30*24*time.Hour), authority.Issue(30*24*time.Hour)
	file := filepath.Join(t.TempDir(), "config.yaml")
	text := "listen: \"\"\nadmin: \"\"\nupstream: none\nmasters: embedded\ntls:\n  listen: 127.0.0.1:0\n  cert_file: " + first.CertFile + "\n  key_file: " + first.KeyFile + "\n"
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(text)
	cfg, err := config.Load(file, config.Flags{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(cfg, slog.New(slog.DiscardHandler), new(slog.LevelVar), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Serve(t.Context()) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil { // the test's context has ended
			t.Errorf("Serve: %v", err)
		}
	})
	if text := p.Banner(); !strings.Contains(text, "listening on   127.0.0.1:") || !strings.Contains(text, "redis-cli --tls -p ") {
		t.Error(text)
	}
	shown := func() string {
		conn, err := tls.Dial("tcp", p.tlsListener.Addr().String(), &tls.Config{RootCAs: authority.Pool(), ServerName: "localhost"})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	if shown() != first.Serial.String() {
		t.Error("another certificate is shown")
	}
	for bad, want := range map[string]string{
		strings.Replace(text, first.KeyFile, second.KeyFile, 1):         "config.yaml:7: tls.cert_file: " + first.CertFile + " and the key in " + second.KeyFile + " cannot be used",
		strings.Replace(text, "127.0.0.1:0", "127.0.0.1:1", 1):          "config.yaml:6: tls.listen: cannot be changed from 127.0.0.1:0 to 127.0.0.1:1 by a reload, only by a restart",
		strings.Replace(text, "listen: \"\"", "listen: 127.0.0.1:0", 1): "config.yaml:1: listen: cannot be changed from - to 127.0.0.1:0 by a reload, only by a restart",
	} {
		write(bad)
		if _, err := p.Reload(t.Context(), false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if shown() != first.Serial.String() {
		t.Error("a refused reload changed the certificate")
	}
	write(strings.NewReplacer(first.CertFile, second.CertFile, first.KeyFile, second.KeyFile).Replace(text))
	if _, err := p.Reload(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if shown() != second.Serial.String() {
		t.Error("the other files are not in use")
	}
}

package endpoint

import (
	"context"
	"crypto/tls"
	"net"
	"path/filepath"
	"redlock-proxy/integration/testca"
	"strings"
	"testing"
	"time"
)

// A dialled connection reaches the listener that the URL names.
func TestDial(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	authority := testca.New(t)
	certificate := authority.Issue(time.Hour).Load(t)
	for _, row := range []struct{ network, listen, url string }{
		{"tcp", "127.0.0.1:0", "redis://127.0.0.1:PORT"},
		{"tcp", "127.0.0.1:0", "rediss://localhost:PORT?ca_cert_file=" + authority.File},
		{"tcp", "127.0.0.1:0", "rediss://127.0.0.1:PORT?server_name=localhost&ca_cert_file=" + authority.File},
		{"unix", path, "unix://" + path},
	} {
		listener, err := net.Listen(row.network, row.listen)
		if err != nil {
			t.Fatal(err)
		}
		server, err := Parse(withPort(row.url, listener))
		if err != nil {
			t.Fatal(err)
		}
		if server.TLS != nil {
			listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{certificate}})
		}
		greeted := make(chan error, 1)
		go func() {
			conn, err := listener.Accept()
			if err == nil {
				_, err = conn.Write([]byte("hi"))
				conn.Close()
			}
			greeted <- err
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		conn, err := server.Dial(ctx)
		cancel()
		if err != nil {
			t.Fatalf("%s: %v", row.url, err)
		}
		text := make([]byte, 2)
		if _, err := conn.Read(text); err != nil || string(text) != "hi" {
			t.Errorf("%s: read %q, %v", row.url, text, err)
		}
		conn.Close()
		if err := <-greeted; err != nil {
			t.Errorf("%s: %v", row.url, err)
		}
		listener.Close()
	}
}

// rediss checks the server's name, and no connection is made in the clear.
func TestDialRefusesAStranger(t *testing.T) {
	certificate := testca.New(t).Issue(time.Hour).Load(t)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Read(make([]byte, 1)) // does the handshake
			conn.Close()
		}
	}()
	for url, trusted := range map[string]bool{"rediss://localhost:PORT": false, "rediss://localhost:PORT?skip_verify=true": true} {
		server, err := Parse(withPort(url, listener))
		if err != nil {
			t.Fatal(err)
		}
		conn, err := server.Dial(t.Context())
		if err == nil {
			conn.Close()
		}
		if (err == nil) != trusted {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestDialHonoursItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if conn, err := (Endpoint{Network: "tcp", Address: "127.0.0.1:1"}).Dial(ctx); err == nil {
		conn.Close()
		t.Error("dialled after the end")
	}
}

// withPort puts a listener's port into a URL.
func withPort(url string, listener net.Listener) string {
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return strings.Replace(url, "PORT", port, 1)
}

// No error shows any part of the URL, because a part of the password may be at the wrong
// place.
func FuzzParseEndpoint(f *testing.F) {
	for _, text := range []string{"redis://u:hunter2@h:1/2", "rediss://:hunter2@[::1]:7?skip_verify=true", "unix://u:hunter2@/a/b?db=3", "redis://hunter2#x@h", "redis://h:99999", "hunter2"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		server, err := Parse(text)
		if err != nil {
			if strings.Contains(text, "hunter2") && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%q: the error shows the password: %v", text, err)
			}
			return
		}
		if server.Network == "" || server.Address == "" || server.Name == "" || server.DB < 0 {
			t.Errorf("%q is read as %q at %q, database %d", text, server.Name, server.Address, server.DB)
		}
		_ = CanonicalAddress(server.Address)
	})
}

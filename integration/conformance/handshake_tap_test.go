package conformance

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// tap is a relay that records the bytes of both sides. It serves only to explain a
// failure: the trials themselves run without it.
type tap struct {
	listener net.Listener
	target   string

	mu          sync.Mutex
	transcript  strings.Builder
	connections int
}

func startTap(t *testing.T, target string) *tap {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	p := &tap{listener: listener, target: target}
	go p.accept()
	return p
}

func (p *tap) port() int { return p.listener.Addr().(*net.TCPAddr).Port }

func (p *tap) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			client.Close()
			continue
		}
		p.mu.Lock()
		p.connections++
		number := p.connections
		p.mu.Unlock()
		go p.relay(client, server, fmt.Sprintf("%d >", number))
		go p.relay(server, client, fmt.Sprintf("%d <", number))
	}
}

func (p *tap) relay(from, to net.Conn, mark string) {
	defer to.Close()
	defer p.note(mark, "end")
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			p.note(mark, fmt.Sprintf("%.2000q", buf[:n]))
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			if err != io.EOF {
				p.note(mark, err.Error())
			}
			return
		}
	}
}

func (p *tap) note(mark, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(&p.transcript, "    %s %s\n", mark, text)
}

func (p *tap) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.transcript.String()
}

// explain repeats a failed trial, once on its proxy and once on a plain Redis. It returns
// the bytes on the wire and the outcome.
func (s *handshakeStage) explain(t *testing.T, program clientProgram, trial handshakeTrial) string {
	t.Helper()
	installing.Lock() // one at a time: the plain Redis has one password
	defer installing.Unlock()
	ctx := t.Context()
	if err := s.plain.Direct.ConfigSet(ctx, "requirepass", trial.password).Err(); err != nil {
		return err.Error()
	}
	var text strings.Builder
	for _, server := range []struct{ what, addr string }{
		{"plain Redis", s.plain.Addr()},
		{"the proxy", fmt.Sprintf("127.0.0.1:%d", trial.port)},
	} {
		tapped := startTap(t, server.addr)
		again := trial
		again.key, again.port = trial.key+"-again", tapped.port()
		lines, err := again.start(t, program)
		fmt.Fprintf(&text, "the same on %s: %q %v\n%s", server.what, lines, err, tapped)
	}
	return text.String()
}

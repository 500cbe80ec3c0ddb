package integration

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait of the suite. It is far beyond what a healthy
// run needs, so that only something broken reaches it.
const patience = 30 * time.Second

// process is a running child. It dies with the test process, whatever
// happens to that.
type process struct {
	name string
	cmd  *exec.Cmd
	log  *logBuffer
	done chan struct{} // closed once the child has been waited for
	err  error         // of Wait; read only after done
}

func startProcess(name, program string, args ...string) (*process, error) {
	p := &process{name: name, log: &logBuffer{}, done: make(chan struct{})}
	p.cmd = exec.Command(program, args...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// kill ends the child at once, paused or not, and waits until it is gone.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.done
}

// stop asks the child to end, waits for it, and returns its exit code.
func (p *process) stop() (int, error) {
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(patience):
		p.kill()
		return -1, errors.New(p.name + " did not end after SIGTERM")
	}
	return p.cmd.ProcessState.ExitCode(), nil
}

// logBuffer collects what a child prints.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// prepend puts what an earlier process printed in front.
func (l *logBuffer) prepend(earlier string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	later := l.text.String()
	l.text.Reset()
	l.text.WriteString(earlier)
	l.text.WriteString(later)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// tail returns the last n lines.
func (l *logBuffer) tail(n int) string {
	lines := strings.Split(strings.TrimSpace(l.String()), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// freePort returns a port nobody listens on, from below the range the kernel
// gives to outgoing connections, so that a server can come back on it later.
func freePort(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := 15000 + rand.IntN(15000)
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		listener.Close()
		return port
	}
	t.Fatal("no free port found")
	return 0
}

// waitFor polls until check returns nil, and fails the test with its last
// error when patience is over.
func waitFor(t testing.TB, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(pause)
	}
}

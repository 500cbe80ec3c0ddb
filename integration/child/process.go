// Package child runs the programs of the integration suite and the bench: servers,
// proxies, load generators.
package child

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Process is a running child. It dies with the process that started it.
type Process struct {
	Name string
	PID  int
	Log  *Log          // its output
	Done chan struct{} // closed after it has ended

	cmd *exec.Cmd
}

// Start starts a program. Errors call it name.
func Start(name, program string, args ...string) (*Process, error) {
	p := &Process{Name: name, Log: &Log{}, Done: make(chan struct{}), cmd: exec.Command(program, args...)}
	p.cmd.Stdout, p.cmd.Stderr = p.Log, p.Log
	EndWithParent(p.cmd)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p.PID = p.cmd.Process.Pid
	go func() {
		_ = p.cmd.Wait() // ProcessState has the exit code
		close(p.Done)
	}()
	return p, nil
}

// Signal sends a signal. It does nothing if the process has ended.
func (p *Process) Signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// Running tells whether the process has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.Done:
		return false
	default:
		return true
	}
}

// Kill kills the process, even a stopped one, and waits for its end.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.Done
}

// Stop sends SIGTERM, waits at most patience for the end, and returns the exit code. If
// the process does not end, Stop kills it and returns an error.
func (p *Process) Stop(patience time.Duration) (int, error) {
	p.Signal(syscall.SIGTERM)
	select {
	case <-p.Done:
	case <-time.After(patience):
		p.Kill()
		return -1, errors.New(p.Name + " did not end after SIGTERM")
	}
	return p.cmd.ProcessState.ExitCode(), nil
}

// claims keeps the ports that FreePort has returned. A claim is a UDP socket on the same
// port number. It disturbs nobody and ends with this process.
var claims sync.Map

// FreePort returns a port on which nothing listens. It returns no port twice, not even to
// two processes at the same time. The port is below the kernel's range for outgoing
// connections, so that a server can be restarted on it.
func FreePort() (int, error) {
	for range 10_000 {
		port := 15000 + rand.IntN(15000)
		claim, err := net.ListenPacket("udp", Loopback(port))
		if err != nil {
			continue
		}
		claims.Store(port, claim)
		listener, err := net.Listen("tcp", Loopback(port))
		if err == nil {
			return port, listener.Close()
		}
	}
	return 0, errors.New("no free port found")
}

// Loopback returns the address of a port on this machine.
func Loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

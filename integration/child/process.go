// Package child runs the programs that the integration suite and the bench
// measure and test: servers, proxies, loads.
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

// Process is a running child. It dies with the process that started it,
// whatever happens to that.
type Process struct {
	Name string
	PID  int
	Log  *Log          // what it prints
	Done chan struct{} // closed once it has been waited for

	cmd *exec.Cmd
}

// Start runs a program. Name is what errors call it.
func Start(name, program string, args ...string) (*Process, error) {
	p := &Process{Name: name, Log: &Log{}, Done: make(chan struct{}), cmd: exec.Command(program, args...)}
	p.cmd.Stdout, p.cmd.Stderr = p.Log, p.Log
	EndWithParent(p.cmd)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p.PID = p.cmd.Process.Pid
	go func() {
		_ = p.cmd.Wait() // how it ended, its state says
		close(p.Done)
	}()
	return p, nil
}

// Signal sends a signal; one that has ended does not notice.
func (p *Process) Signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// Running tells whether it has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.Done:
		return false
	default:
		return true
	}
}

// Kill ends it at once, stopped or not, and waits until it is gone.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.Done
}

// Stop asks it to end, waits as long as patience, and returns its exit code.
// One that does not end is killed, and that is an error.
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

// given are the ports that FreePort has returned.
var given sync.Map

// FreePort returns a port nobody listens on, and no port twice. It is from below
// the range the kernel gives to outgoing connections, so that a server can come
// back on it later.
func FreePort() (int, error) {
	for range 10_000 {
		port := 15000 + rand.IntN(15000)
		if _, taken := given.LoadOrStore(port, true); taken {
			continue
		}
		listener, err := net.Listen("tcp", Loopback(port))
		if err == nil {
			return port, listener.Close()
		}
	}
	return 0, errors.New("no free port found")
}

// Loopback is the address of a port of this machine.
func Loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

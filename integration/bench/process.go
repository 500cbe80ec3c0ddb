package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds every wait for a server. It is far beyond what one needs.
const patience = 30 * time.Second

// process is a running child. It dies with this process.
type process struct {
	name string
	cmd  *exec.Cmd
	log  *log
	done chan struct{} // closed once the child has been waited for
}

func startProcess(name, program string, args ...string) (*process, error) {
	p := &process{name: name, log: &log{}, done: make(chan struct{})}
	p.cmd = exec.Command(program, args...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		_ = p.cmd.Wait() // what matters is that it has ended
		close(p.done)
	}()
	return p, nil
}

// thisProcess stands for the bench itself, to ask for its CPU time.
func thisProcess() *process {
	return &process{name: "bench", cmd: &exec.Cmd{Process: &os.Process{Pid: os.Getpid()}}}
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// kill ends the child, stopped or not, and waits until it is gone.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.done
}

// untilServing polls check until it returns nil, and ends with an error when
// the child has ended or patience is over.
func (p *process) untilServing(ctx context.Context, check func(ctx context.Context) error) error {
	for until := time.Now().Add(patience); ; {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended:\n%s", p.name, p.log)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(until) {
			return fmt.Errorf("%s does not serve: %w\n%s", p.name, err, p.log)
		}
	}
}

// cpu is the time the child has spent on processors so far, user and system,
// all threads. The kernel's clock for it is finer than the ticks in /proc.
func (p *process) cpu() (time.Duration, error) {
	const wholeProcess = 2 // CPUCLOCK_SCHED, as clock_getcpuclockid(3) builds it
	var spent unix.Timespec
	if err := unix.ClockGettime(int32(^p.cmd.Process.Pid)<<3|wholeProcess, &spent); err != nil {
		return 0, fmt.Errorf("CPU time of %s: %w", p.name, err)
	}
	return time.Duration(spent.Nano()), nil
}

// resident is the child's resident memory in bytes.
func (p *process) resident() (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	found := regexp.MustCompile(`VmRSS:\s*(\d+) kB`).FindSubmatch(status)
	if found == nil {
		return 0, fmt.Errorf("no VmRSS of %s", p.name)
	}
	kilobytes, err := strconv.ParseFloat(string(found[1]), 64)
	return kilobytes * 1024, err
}

// cpuOf adds up the CPU time of several children.
func cpuOf(children ...*process) (time.Duration, error) {
	var total time.Duration
	var failures error
	for _, child := range children {
		spent, err := child.cpu()
		total += spent
		failures = errors.Join(failures, err)
	}
	return total, failures
}

// freePort returns a port nobody listens on, from below the range the kernel
// gives to outgoing connections.
func freePort() (int, error) {
	for range 1000 {
		port := 15000 + rand.IntN(15000)
		listener, err := net.Listen("tcp", loopback(port))
		if err == nil {
			return port, listener.Close()
		}
	}
	return 0, errors.New("no free port found")
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// programVersion asks a program for its version, or says that it is missing.
func programVersion(program, pattern string, flag string) string {
	output, _ := exec.Command(program, flag).CombinedOutput() // some exit with 1
	if found := regexp.MustCompile(pattern).FindSubmatch(output); found != nil {
		return program + " " + string(found[1])
	}
	return "no " + program
}

// log keeps the last of what a child prints.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

const logKept = 4 << 10

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(b)
	if extra := l.text.Len() - logKept; extra > 0 {
		l.text.Next(extra)
	}
	return len(b), nil
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.TrimSpace(l.text.String())
}

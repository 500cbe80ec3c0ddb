package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"time"

	"redlock-proxy/integration/child"

	"golang.org/x/sys/unix"
)

// patience bounds every wait for a server. A healthy server needs far less.
const patience = 30 * time.Second

// thisProcess represents the bench itself, for its CPU time.
func thisProcess() *child.Process { return &child.Process{Name: "bench", PID: os.Getpid()} }

// untilServing polls serves until it returns nil. The section fails if the child has ended or patience is over.
func untilServing(ctx context.Context, p *child.Process, serves func(ctx context.Context) error) {
	for until := time.Now().Add(patience); ; {
		err := serves(ctx)
		if err == nil {
			return
		}
		select {
		case <-p.Done:
			panic(failure{fmt.Errorf("%s ended:\n%s", p.Name, p.Log.Tail(20))})
		case <-ctx.Done():
			panic(failure{ctx.Err()})
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(until) {
			panic(failure{fmt.Errorf("%s does not serve: %w\n%s", p.Name, err, p.Log.Tail(20))})
		}
	}
}

// answers asks the server at addr one command.
func answers(addr string, command ...string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		client, err := dialLean(ctx, addr)
		if err != nil {
			return err
		}
		defer client.close()
		_, err = client.do(command...)
		return err
	}
}

// cpu returns the CPU time of a child so far, user and system, of all threads. It reads the
// kernel's clock for that, which is finer than the ticks in /proc.
func cpu(p *child.Process) (time.Duration, error) {
	const wholeProcess = 2 // CPUCLOCK_SCHED, as clock_getcpuclockid(3) builds it
	var spent unix.Timespec
	if err := unix.ClockGettime(int32(^p.PID)<<3|wholeProcess, &spent); err != nil {
		return 0, fmt.Errorf("CPU time of %s: %w", p.Name, err)
	}
	return time.Duration(spent.Nano()), nil
}

// resident returns a child's resident memory in bytes.
func resident(p *child.Process) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID))
	if err != nil {
		return 0, err
	}
	found := regexp.MustCompile(`VmRSS:\s*(\d+) kB`).FindSubmatch(status)
	if found == nil {
		return 0, fmt.Errorf("no VmRSS of %s", p.Name)
	}
	kilobytes, err := strconv.ParseFloat(string(found[1]), 64)
	return kilobytes * 1024, err
}

// cpuOf adds up the CPU time of several children.
func cpuOf(children ...*child.Process) (time.Duration, error) {
	var total time.Duration
	var failures error
	for _, p := range children {
		spent, err := cpu(p)
		total += spent
		failures = errors.Join(failures, err)
	}
	return total, failures
}

// programVersion returns a program's version, or says that the program is missing.
func programVersion(program, pattern string, flag string) string {
	output, _ := exec.Command(program, flag).CombinedOutput() // some exit with 1
	if found := regexp.MustCompile(pattern).FindSubmatch(output); found != nil {
		return program + " " + string(found[1])
	}
	return "no " + program
}

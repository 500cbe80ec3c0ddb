package main

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"redlock-proxy/integration/child"

	"golang.org/x/sys/unix"
)

// patience bounds every wait for a server. A healthy server needs far less.
const patience = 30 * time.Second

const (
	shippedTimeout  = 50 * time.Millisecond
	generousTimeout = time.Second
)

// A server is a child that serves Redis's protocol: a redis-server without persistence, a
// proxy, or twemproxy.
type server struct {
	*child.Process
	port, admin int
}

func (s *server) addr() string { return child.Loopback(s.port) }

// startRedis starts a server that is killed when the section ends.
func (b *bench) startRedis(name string) *server {
	port := must(child.FreePort())
	process, err := child.StartRedis(name, []string{"redis-server"}, b.scratch, "--port", strconv.Itoa(port), "--bind", "127.0.0.1",
		"--maxmemory-policy", "noeviction", "--maxclients", "20000")
	if err != nil {
		check(fmt.Errorf("%w; Debian package redis-server", err))
	}
	return b.serving(&server{Process: process, port: port}, "PING")
}

// serving waits until the server answers this command. The section fails if the server ends.
func (b *bench) serving(s *server, command ...string) *server {
	b.atEnd(s.Kill)
	b.until(s.Process, "serves", func() error {
		client, err := dialLean(s.addr())
		if err != nil {
			return err
		}
		defer client.close()
		_, err = client.do(command...)
		return err
	})
	return s
}

// until polls until is returns nil. The section fails if the child has ended or patience is over.
func (b *bench) until(p *child.Process, what string, is func() error) {
	for deadline := time.Now().Add(patience); ; rest(10 * time.Millisecond) {
		err := is()
		if err == nil {
			return
		}
		check(running.Err())
		select {
		case <-p.Done:
			check(fmt.Errorf("%s ended:\n%s", p.Name, p.Log.Tail(20)))
		default:
		}
		if time.Now().After(deadline) {
			check(fmt.Errorf("%s: not yet true that it %s: %w\n%s", p.Name, what, err, p.Log.Tail(20)))
		}
	}
}

// cluster is a set of masters, the upstream, and a proxy in front of them.
type cluster struct {
	masters  []*server
	upstream *server
	proxy    *server
}

// startCluster starts n masters and a proxy. The proxy's timeout is long, so that it does
// not give up on a master because the machine is busy.
func (b *bench) startCluster(n int) *cluster {
	c := b.startServers(n)
	c.proxy = b.startProxy(c.addresses(), c.upstream, generousTimeout, "")
	return c
}

func (b *bench) startServers(n int) *cluster {
	c := &cluster{upstream: b.startRedis("upstream")}
	for i := range n {
		c.masters = append(c.masters, b.startRedis(fmt.Sprintf("master %d", i+1)))
	}
	return c
}

func (c *cluster) addresses() (addresses []string) {
	for _, master := range c.masters {
		addresses = append(addresses, master.addr())
	}
	return addresses
}

func (c *cluster) masterProcesses() (children []*child.Process) {
	for _, master := range c.masters {
		children = append(children, master.Process)
	}
	return children
}

func buildProxy(into string, flags ...string) (string, error) {
	binary := filepath.Join(into, "redlock-proxy")
	args := append([]string{"build", "-o", binary}, flags...)
	output, err := exec.CommandContext(running, "go", append(args, "redlock-proxy")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building the proxy: %w\n%s", err, output)
	}
	return binary, nil
}

// ownConnections is for a proxy that does not share upstream connections, as it does by default.
const ownConnections = "upstream_connections: own\n"

// startProxy starts a proxy with more lines of configuration, and waits until it is ready. It
// is killed when the section ends.
func (b *bench) startProxy(masters []string, upstream *server, masterTimeout time.Duration, more string) *server {
	p := &server{port: must(child.FreePort()), admin: must(child.FreePort())}
	file := filepath.Join(b.scratch, fmt.Sprintf("proxy-%d.yaml", p.port))
	text := fmt.Sprintf("listen: %s\nadmin: %s\nupstream: redis://%s\nmasters:\n  - redis://%s\n", p.addr(), child.Loopback(p.admin),
		upstream.addr(), strings.Join(masters, "\n  - redis://"))
	text += fmt.Sprintf("locks: [{match: \"lock:*\"}]\nmaster_timeout: %s\nlimits: {clients: 20000}\nlog: {level: warn}\n", masterTimeout)
	check(os.WriteFile(file, []byte(text+more), 0o600))
	p.Process = must(child.Start("the proxy", b.binary, "-config", file, "-new"))
	b.atEnd(p.Kill)
	b.until(p.Process, "is ready", func() error {
		_, err := p.ask("/readyz")
		return err
	})
	return p
}

// ask returns the lines of an admin page.
func (p *server) ask(path string) (lines []string, err error) {
	client := http.Client{Timeout: patience}
	answer, err := client.Get("http://" + child.Loopback(p.admin) + path)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", path, answer.Status)
	}
	text := bufio.NewScanner(answer.Body)
	for text.Scan() {
		lines = append(lines, text.Text())
	}
	return lines, text.Err()
}

// sum adds up the proxy's series of this name that have all of the labels, such as `kind="acquire"`.
func (p *server) sum(name string, labels ...string) (total float64) {
next:
	for _, line := range must(p.ask("/metrics")) {
		at := max(0, strings.LastIndexByte(line, ' '))
		if own, _, _ := strings.Cut(line[:at], "{"); own != name {
			continue
		}
		for _, label := range labels {
			if !strings.Contains(line, label) {
				continue next
			}
		}
		total += must(strconv.ParseFloat(line[at+1:], 64))
	}
	return total
}

// thisProcess represents the bench itself, for its CPU time.
func thisProcess() *child.Process { return &child.Process{Name: "bench", PID: os.Getpid()} }

// cpu returns the CPU time of children so far, user and system, of all threads. It reads the
// kernel's clock for that, which is finer than the ticks in /proc.
func cpu(children ...*child.Process) (total time.Duration) {
	const wholeProcess = 2 // CPUCLOCK_SCHED, as clock_getcpuclockid(3) builds it
	for _, p := range children {
		var spent unix.Timespec
		if err := unix.ClockGettime(int32(^p.PID)<<3|wholeProcess, &spent); err != nil {
			check(fmt.Errorf("CPU time of %s: %w", p.Name, err))
		}
		total += time.Duration(spent.Nano())
	}
	return total
}

// resident returns a child's resident memory in bytes.
func resident(p *child.Process) float64 {
	status := must(os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID)))
	found := regexp.MustCompile(`VmRSS:\s*(\d+) kB`).FindSubmatch(status)
	if found == nil {
		check(errors.New("no VmRSS of " + p.Name))
	}
	return must(strconv.ParseFloat(string(found[1]), 64)) * 1024
}

// programVersion returns a program's version, or says that the program is missing.
func programVersion(program, pattern string, flag string) string {
	output, _ := exec.Command(program, flag).CombinedOutput() // some exit with 1
	if found := regexp.MustCompile(pattern).FindSubmatch(output); found != nil {
		return program + " " + string(found[1])
	}
	return "no " + program
}

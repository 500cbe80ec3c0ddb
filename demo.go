package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/endpoint"
)

// programs are the servers that may be used, the best first.
var programs = []string{"redis-server", "valkey-server"}

const (
	// firstPort is the port of the first master, if it is free.
	firstPort = 6381
	// demoPatience bounds the time in which a server must answer.
	demoPatience = 20 * time.Second
	// attempts is how often the servers are started. Another program may take a port that was
	// free.
	attempts = 3
)

// servers are the processes of -demo. A goroutine for each waits for its end.
type servers struct {
	program string
	dir     string
	list    []*process
	waiting sync.WaitGroup
}

type process struct {
	name, address string
	command       *exec.Cmd
	ended         chan struct{}
}

// prepareDemo makes cfg use five masters and an upstream, each a real redis-server or valkey-server on a
// loopback port, so that a person may kill one of them and watch what happens. Where neither program is
// installed, the servers stay embedded. It also chooses addresses on which nothing listens yet. It returns
// when the servers answer. If it fails, nothing is left of them.
//
// The servers keep nothing on disk. They end with end, which the caller must call. On Linux the kernel kills
// them when this process ends in any other way, also by SIGKILL. Elsewhere they then stay, and a person must
// end them. A Ctrl-C at the terminal reaches only the proxy, so that it can drain.
func prepareDemo(ctx context.Context, cfg *config.Config) (end func(), err error) {
	for _, address := range []*string{&cfg.Listen, &cfg.Admin} {
		if *address, err = available(*address); err != nil {
			return nil, fmt.Errorf("no free port for -demo: %w", err)
		}
	}
	program := installed()
	if program == "" {
		return func() {}, nil
	}
	for range attempts {
		var s *servers
		if s, err = startDemo(ctx, program); err == nil {
			s.use(cfg)
			return s.close, nil
		}
	}
	return nil, err
}

// installed returns the path of the best program that is installed, or "" if there is none.
func installed() string {
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// startDemo starts the masters and the upstream, and returns when all answer.
func startDemo(ctx context.Context, program string) (*servers, error) {
	dir, err := os.MkdirTemp("", "redlock-demo-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder for the servers of -demo: %w", err)
	}
	s := &servers{program: program, dir: dir}
	for i := range config.EmbeddedMasters + 1 {
		name := "master " + strconv.Itoa(i+1)
		if i == config.EmbeddedMasters {
			name = "upstream"
		}
		if err := s.run(name, firstPort+i); err != nil {
			s.close()
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, demoPatience)
	defer cancel()
	for _, p := range s.list {
		if err := p.awaitAnswer(ctx); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

// run starts one server on the port, or on another if that is in use.
func (s *servers) run(name string, port int) error {
	address, err := available(net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("no free port for the %s of -demo: %w", name, err)
	}
	dir := filepath.Join(s.dir, strings.ReplaceAll(name, " ", "-"))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("cannot make a folder for the %s of -demo: %w", name, err)
	}
	host, listenPort, _ := net.SplitHostPort(address)
	p := &process{name: name, address: address, ended: make(chan struct{})}
	p.command = exec.Command(s.program, "--port", listenPort, "--bind", host, "--dir", dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no", "--maxmemory-policy", "noeviction")
	endWithParent(p.command)
	if err := p.command.Start(); err != nil {
		return fmt.Errorf("cannot start the %s of -demo: %w", name, err)
	}
	s.list = append(s.list, p)
	s.waiting.Go(func() {
		_ = p.command.Wait() // a person may have killed it
		close(p.ended)
	})
	return nil
}

// available returns an address of this machine on which nothing listens: the given one, or
// else one with another port.
func available(address string) (string, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		listener, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// awaitAnswer returns when the process itself answers at its address. Another server that has
// taken the address in the meantime does not count.
func (p *process) awaitAnswer(ctx context.Context) error {
	client := redis.NewClient(&redis.Options{Addr: p.address, MaxRetries: -1, ContextTimeoutEnabled: true, DisableIdentity: true})
	defer client.Close()
	for {
		info, err := client.Info(ctx, "server").Result()
		if err == nil && strings.Contains(info, fmt.Sprintf("\nprocess_id:%d\r", p.command.Process.Pid)) {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("the %s of -demo ended at once: %s", p.name, p.command.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("the %s of -demo does not answer: %w", p.name, errors.Join(ctx.Err(), err))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// use makes cfg use the servers. They are a new set of masters.
func (s *servers) use(cfg *config.Config) {
	cfg.Masters = config.Masters{}
	for i, p := range s.list {
		server := endpoint.Endpoint{Name: p.address, Network: "tcp", Address: p.address}
		if i < config.EmbeddedMasters {
			cfg.Masters.Servers = append(cfg.Masters.Servers, server)
		} else {
			cfg.Upstream = config.Upstream{Kind: config.UpstreamServer, Server: server}
		}
		cfg.DemoServers = append(cfg.DemoServers, config.DemoServer{Name: p.name, Address: p.address, PID: p.command.Process.Pid})
	}
	cfg.NewSet = true
}

// close kills the servers, waits for their end and removes their folder.
func (s *servers) close() {
	for _, p := range s.list {
		_ = p.command.Process.Kill() // it may have ended
	}
	s.waiting.Wait()
	_ = os.RemoveAll(s.dir)
}

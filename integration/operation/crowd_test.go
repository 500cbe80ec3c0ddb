package operation

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/layer"
	"redlock-proxy/integration/rig"
	"redlock-proxy/integration/work"
)

// crowdSize is how many idle clients one process must hold. The test takes fewer if it may
// not open so many files, but no fewer than smallestCrowd.
const (
	crowdSize     = 50_000
	smallestCrowd = 10_000
	crowdsOthers  = 1000 // files that the test and the proxy open besides those of the crowd
)

// A crowd of idle clients that have locked once delays nobody noticeably, and each of them is
// served again. Delays are only reported: they depend on the machine. If it is so busy that masters
// answer too late, clients get QUORUMLOST and ask again.
func TestCrowdOfIdleClients(t *testing.T) {
	layer.Only(t, layer.Long, "takes long")
	limit := openFiles(t, crowdSize+crowdsOthers)
	size := min(crowdSize, limit-crowdsOthers)
	if size < smallestCrowd {
		layer.Missing(t, fmt.Sprintf("a limit of %d open files (ulimit -n) for %d clients, and this is %d", smallestCrowd+crowdsOthers, smallestCrowd, limit))
	}
	if size < crowdSize {
		t.Logf("%d clients instead of %d: the limit of open files is %d", size, crowdSize, limit)
	}
	binary := filepath.Join(rig.Scratch, "redlock-proxy-crowd") // the race detector knows 8,128 goroutines at most
	if err := rig.BuildProxy(binary); err != nil {
		t.Fatal(err)
	}
	c := rig.StartCluster(t, rig.Options{Binary: binary, LogLevel: "warn", More: fmt.Sprintf("limits: {clients: %d}\n", size+100)})
	defer reportCrowd(t, c.Proxy)
	w := work.Start(t, work.Options{At: work.Through(c.Proxy)})
	w.GoesOn(t, 0)
	crowd := make([]*idler, size)
	each(t, crowd, func(i int) (err error) { crowd[i], err = arrive(c.Proxy.Addr(), i); return err })
	t.Logf("%d clients came and locked", size)
	w.GoesOn(t, 0)
	t.Logf("memory and goroutines of the proxy: %s bytes, %s", c.Proxy.Metric(t, "process_resident_memory_bytes"), c.Proxy.Metric(t, "go_goroutines"))
	each(t, crowd, func(i int) error { return crowd[i].lock(i) })
	w.GoesOn(t, 0)
	each(t, crowd, func(i int) error { return crowd[i].conn.Close() })
	waitGone(t, c.Proxy, size)
	w.GoesOn(t, 0)
	w.Check(t)
}

// waitGone waits until only the workers are connected.
func waitGone(t *testing.T, p *rig.Proxy, size int) {
	t.Helper()
	const workers = 10
	for left := size; left > workers; {
		before := left
		rig.WaitFor(t, "more clients have left", func() (err error) {
			left, err = strconv.Atoi(p.Metric(t, "redlock_clients_connected"))
			if err == nil && left > workers && left >= before {
				err = fmt.Errorf("%d are there", left)
			}
			return err
		})
	}
}

// TestClientsComeAndGo: clients of a crowd connect, take a lock and leave, a hundred at a time. Every other one leaves without a
// release. Each such lock is held until its owner comes again, on a new connection. Others lock all the time.
func TestClientsComeAndGo(t *testing.T) {
	const wanted = 10_000
	size := min(wanted, openFiles(t, wanted+crowdsOthers)-crowdsOthers)
	if layer.Chosen() < layer.Long {
		size = min(size, 2000) // a busy machine needs a minute for more
	}
	if size < wanted {
		t.Logf("%d clients instead of %d", size, wanted)
	}
	c := rig.StartCluster(t, rig.Options{LogLevel: "warn", More: fmt.Sprintf("limits: {clients: %d}\n", size+100)})
	defer reportCrowd(t, c.Proxy)
	w := work.Start(t, work.Options{At: work.Through(c.Proxy)})
	key, token := func(i int) string { return fmt.Sprintf("lock:goer:%d", i) }, func(i int) string { return fmt.Sprintf("token-of-the-goer-%d", i) }
	goers := make([]*idler, size)
	come := func(i int, do func(g *idler) error) error {
		g, err := enter(c.Proxy.Addr(), i)
		if err != nil {
			return err
		}
		defer g.conn.Close()
		return do(g)
	}
	each(t, goers, func(i int) error {
		return come(i, func(g *idler) error {
			again, err := g.ask("+OK", "SET", key(i), token(i), "NX", "PX", "3600000")
			if again && errors.As(err, new(unexpected)) { // a try without a quorum may have taken it
				_, err = g.ask("+OK", "SET", key(i), token(i), "PX", "3600000")
			}
			if err == nil && i%2 == 0 {
				_, err = g.ask(":1", "DEL", key(i))
			}
			return err
		})
	})
	w.GoesOn(t, 0)
	each(t, goers, func(i int) error {
		return come(i, func(g *idler) error {
			if i%2 == 0 {
				return nil
			}
			if _, err := g.ask("$-1", "SET", key(i), "token-of-a-thief", "NX", "PX", "3600000"); err != nil {
				return err
			}
			_, err := g.ask(":1", "DEL", key(i))
			return err
		})
	})
	waitGone(t, c.Proxy, size)
	w.GoesOn(t, 0)
	w.Check(t)
}

// askedAgain counts commands that were sent again after QUORUMLOST.
var askedAgain atomic.Int64

// reportCrowd says what the proxy and the machine did. The proxy may have ended.
func reportCrowd(t *testing.T, p *rig.Proxy) {
	t.Logf("%d commands were sent again after QUORUMLOST", askedAgain.Load())
	if !t.Failed() {
		return
	}
	load, _ := os.ReadFile("/proc/loadavg")
	memory, _ := os.ReadFile("/proc/meminfo")
	t.Logf("load: %s%.150s", load, memory)
	if !p.Lives() {
		return
	}
	for line := range strings.Lines(p.Metrics(t)) {
		if strings.HasPrefix(line, "redlock_") && !strings.Contains(line, "_bucket") {
			t.Log(strings.TrimSpace(line))
		}
	}
}

// each calls f for each client of the crowd, a hundred at a time.
func each(t *testing.T, crowd []*idler, f func(i int) error) {
	t.Helper()
	const doors = 100
	var wg sync.WaitGroup
	for door := range doors {
		wg.Go(func() {
			for i := door; i < len(crowd); i += doors {
				if err := f(i); err != nil {
					t.Errorf("client %d: %v", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// openFiles raises the limit of open files of this process and its children to what the
// test wants, or as far as it may, and returns the limit.
func openFiles(t *testing.T, want uint64) int {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if limit.Max < want && syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: want, Max: want}) == nil {
		return int(want) // root may raise it
	}
	limit.Cur = limit.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	return int(limit.Max)
}

// An idler is a connection without a buffer, since there are so many.
type idler struct{ conn net.Conn }

// arrive connects and locks.
func arrive(addr string, i int) (*idler, error) {
	c, err := enter(addr, i)
	if err != nil {
		return nil, err
	}
	return c, c.lock(i)
}

// enter connects. Each address of the loopback has some 28,000 ports, so clients use several.
func enter(addr string, i int) (*idler, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+i%8))}, Timeout: rig.Patience}
	conn, err := dialer.DialContext(context.Background(), "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &idler{conn}, nil
}

// lock takes a lock and releases it.
func (c *idler) lock(i int) error {
	key, token := fmt.Sprintf("lock:crowd:%d", i), fmt.Sprintf("token-of-the-client-%d", i)
	if _, err := c.ask("+OK", "SET", key, token, "NX", "PX", "60000"); err != nil {
		return err
	}
	again, err := c.ask(":1", "DEL", key)
	if again && errors.As(err, new(unexpected)) {
		_, err = c.ask(":0", "DEL", key) // a try without a quorum may have deleted it
	}
	return err
}

// unexpected is a reply other than the wanted one.
type unexpected string

func (u unexpected) Error() string { return string(u) }

// ask sends a command until the answer is not QUORUMLOST, for as long as rig.Patience. again tells
// whether there was more than one try.
func (c *idler) ask(want string, args ...string) (again bool, err error) {
	began := time.Now()
	for {
		_ = c.conn.SetDeadline(time.Now().Add(rig.Patience))
		if _, err := c.conn.Write(rig.Encode(args...)); err != nil {
			return again, err
		}
		reply, err := bufio.NewReaderSize(c.conn, 64).ReadString('\n')
		switch {
		case err != nil:
			return again, fmt.Errorf("%s after %v: %w", args[0], time.Since(began), err)
		case reply == want+"\r\n":
			return again, nil
		case !strings.HasPrefix(reply, "-QUORUMLOST ") || time.Since(began) > rig.Patience:
			return again, unexpected(fmt.Sprintf("%s got %q after %v", args[0], reply, time.Since(began)))
		}
		again = true
		askedAgain.Add(1)
		time.Sleep(10*time.Millisecond + rand.N(100*time.Millisecond))
	}
}

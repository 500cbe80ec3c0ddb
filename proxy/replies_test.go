package proxy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/integration/layer"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/redlock/resp"
)

const (
	// hugeReply is the length of the longest reply, in bytes.
	hugeReply = 100_000_000
	// mostKept bounds what this process keeps while such a reply passes through it, in bytes. Seven
	// clients with other pipelines are in it, too.
	mostKept = 32 << 20
)

// Whatever happens to the upstream and to clients, nobody gets a reply to another client, and none twice
// or out of order. Each payload names its client. The connections are killed, paused, and lead to another
// server; clients read slowly, send no more before they read, and change their connection in mid-pipeline. Each
// gets as many replies as it has sent commands, and those with a number in their places.
// Before that, and in the middle of it, one client gets a reply of 100 MB.
//
//	REPLIES_TIME=1h go test ./proxy -run '^TestNoReplyReachesAnotherClient$' -timeout 2h
//
// A seed (layer.Seed) chooses what clients do and what strikes. The first run has two seeds. With REPLIES_TIME,
// which is an hour in the tier long, the next ones follow.
func TestNoReplyReachesAnotherClient(t *testing.T) {
	first, runs := layer.Seed(t, "REPLIES_TIME"), time.Duration(0)
	if text := cmp.Or(os.Getenv("REPLIES_TIME"), map[bool]string{true: "1h"}[layer.Chosen() == layer.Long]); text != "" {
		var err error
		if runs, err = time.ParseDuration(text); err != nil {
			t.Fatalf("REPLIES_TIME: %v", err)
		}
	}
	began, seed := time.Now(), first
	for ; !t.Failed() && (seed < first+2 || time.Since(began) < runs); seed++ {
		for connections, configure := range map[string]func(*testConfig){"own": owning, "shared": sharing} {
			t.Run(fmt.Sprintf("%s, seed %d", connections, seed), func(t *testing.T) { runRepliesWorld(t, seed, configure) })
		}
	}
	if t.Failed() {
		t.Logf("repeat with: REDLOCK_SEED=%d go test ./proxy -run '^TestNoReplyReachesAnotherClient$'", seed-1)
	}
}

func runRepliesWorld(t *testing.T, seed uint64, configure func(*testConfig)) {
	servers := []*proxytest.Redis{proxytest.StartRedis(t), proxytest.StartRedis(t)}
	block := "<0.0>" + strings.Repeat("-", 995)
	servers[0].Ask(t, fmt.Sprintf("EVAL \"return redis.call('SET', KEYS[1], string.rep(ARGV[1], %d))\" 1 huge %s", hugeReply/len(block), block))
	var current atomic.Pointer[proxytest.Redis]
	current.Store(servers[0])
	p := startTestProxy(t, servers[0], configure, func(c *testConfig) {
		c.DialUpstream = func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", current.Load().Socket)
		}
	})
	var whole atomic.Int64
	var clients sync.WaitGroup
	calm := make(chan struct{}) // until the first huge reply has come
	for id := range 8 {
		c := &namedClient{t: t, p: p, id: id, random: rand.New(rand.NewPCG(seed, uint64(id)))}
		clients.Go(func() {
			if id == 0 {
				c.getHuge()
				close(calm)
			}
			for isCalm := true; isCalm; {
				select {
				case <-calm:
					isCalm = false
				default:
					c.step()
				}
			}
			for step := range 12 {
				if id == 0 && step == 6 {
					c.exchange(false, false, nil, c.askHuge)
				}
				if c.step() {
					whole.Add(1)
				}
			}
		})
	}
	over := make(chan struct{})
	go func() { clients.Wait(); close(over) }()
	<-calm
	random := rand.New(rand.NewPCG(seed, 1000))
	for harmed := 0; ; harmed++ {
		select {
		case <-over:
			if whole.Load() < 10 || harmed == 0 {
				t.Errorf("%d pipelines were answered whole, and the upstream was harmed %d times", whole.Load(), harmed)
			}
			return
		case <-time.After(time.Duration(random.IntN(40)) * time.Millisecond):
		}
		server := current.Load()
		switch random.IntN(4) {
		case 0:
			server.Ask(t, "CLIENT PAUSE 20 ALL")
		case 1: // a restart: nothing is left of what the clients had there
			current.Store(servers[random.IntN(2)])
			server.Ask(t, "FLUSHALL")
			fallthrough
		default:
			server.Ask(t, "CLIENT KILL TYPE normal SKIPME yes")
		}
	}
}

// A namedClient sends pipelines whose replies name it: <id.number> in the order of the commands, and <id.0> in
// values that it has set. It knows how many replies come, and which of them has which number.
type namedClient struct {
	t      *testing.T
	p      *testProxy
	id     int
	random *rand.Rand
	conn   net.Conn // nil: it has to connect
	sent   int      // the number of the last command that has one
	got    int      // the number of the last reply that has one

	// These are of the current pipeline.
	wanted  int         // replies
	place   map[int]int // of the reply with a number, if it is certain
	came    int         // replies
	scanner resp.Scanner
	begun   []byte // may begin a payload
}

func (c *namedClient) name() string {
	c.sent++
	return fmt.Sprintf("<%d.%d>", c.id, c.sent)
}

// echo is an ECHO that follows the replies that are wanted so far.
func (c *namedClient) echo() string {
	text := "ECHO " + c.name() + "\r\n"
	c.place[c.sent] = c.wanted
	c.wanted++
	return text
}

// getHuge gets the reply of 100 MB, and sees that the proxy does not keep it. A busy machine may be so slow that
// the client passes for one that does not read, so it tries again.
func (c *namedClient) getHuge() {
	before := liveHeap()
	for range 3 {
		read := 0
		whole := c.exchange(false, false, func(n int) {
			if read += n; read-n >= hugeReply/2 || read < hugeReply/2 {
				return
			}
			kept, last := int64(0), int64(-1<<20)
			for kept-last >= 1<<20 { // a proxy that keeps the reply reads on
				time.Sleep(100 * time.Millisecond)
				last, kept = kept, liveHeap()-before
			}
			if kept > mostKept {
				c.t.Errorf("after %d bytes of a reply this process keeps %d bytes more than before", read, kept)
			}
		}, c.askHuge)
		switch {
		case whole && read < hugeReply:
			c.t.Errorf("the huge reply has %d bytes", read)
		case whole:
			return
		}
	}
	c.t.Error("the huge reply never came whole, although nothing struck")
}

func (c *namedClient) askHuge(pipeline *strings.Builder) {
	pipeline.WriteString("GET huge\r\n")
	c.wanted++
}

// liveHeap is the number of bytes that are in use.
func liveHeap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// step sends a pipeline and reads the replies. It tells whether all came.
func (c *namedClient) step() (whole bool) {
	return c.exchange(c.random.IntN(8) == 0, c.random.IntN(4) == 0, nil, func(pipeline *strings.Builder) {
		add := func(replies int, format string, args ...any) {
			fmt.Fprintf(pipeline, format, args...)
			c.wanted += replies
		}
		for range 1 + c.random.IntN(20) {
			switch c.random.IntN(14) {
			case 0:
				add(1, "SET k%d <%d.0>\r\n", c.id, c.id)
			case 1:
				value := strings.Repeat(fmt.Sprintf("<%d.0>", c.id), 1+c.random.IntN(60_000))
				add(1, "*3\r\n$3\r\nSET\r\n%s$%d\r\n%s\r\n", bulk(fmt.Sprint("big", c.id)), len(value), value)
			case 2, 3:
				add(1, "GET big%d\r\n", c.id)
			case 4:
				add(1, "RESET\r\n")
			case 5:
				add(1, "HELLO %d\r\n", 2+c.random.IntN(2))
			case 6:
				add(4, "MULTI\r\nGET k%d\r\nECHO %s\r\nEXEC\r\n", c.id, c.name())
			case 7:
				add(0, "CLIENT REPLY SKIP\r\nGET big%d\r\n", c.id)
			case 8, 9: // the form that most clients send
				add(1, "*2\r\n$3\r\nGET\r\n$2\r\nk%d\r\n", c.id)
			default:
				add(1, "GET k%d\r\n", c.id)
				add(0, "%s", c.echo())
			}
		}
	})
}

// exchange sends a pipeline, and checks the replies as they come. came, if not nil, is told how many bytes each
// read brings. It tells whether all replies came.
func (c *namedClient) exchange(halfCloses, slow bool, came func(n int), build func(*strings.Builder)) (whole bool) {
	if c.conn == nil {
		conn, err := net.Dial("tcp", c.p.address)
		if err != nil {
			c.t.Error(err)
			return false
		}
		c.conn = conn
	}
	c.wanted, c.came, c.place, c.scanner, c.begun = 0, 0, map[int]int{}, resp.Scanner{}, nil
	var pipeline strings.Builder
	build(&pipeline)
	pipeline.WriteString(c.echo())
	conn := c.conn
	go func() {
		_, _ = io.WriteString(conn, pipeline.String())
		if halfCloses {
			_ = conn.(*net.TCPConn).CloseWrite()
		}
	}()
	if whole = c.read(slow, came); halfCloses || !whole {
		_ = conn.Close()
		c.conn = nil
	}
	return whole
}

// read reads until the last reply or the end of the connection.
func (c *namedClient) read(slow bool, came func(n int)) (whole bool) {
	_ = c.conn.SetReadDeadline(time.Now().Add(patience))
	read := 0
	for buf := make([]byte, 64<<10); c.came < c.wanted; {
		piece := buf
		if slow && read < 1<<20 {
			time.Sleep(time.Millisecond)
			piece = buf[:16<<10]
		}
		n, err := c.conn.Read(piece)
		if read += n; came != nil {
			came(n)
		}
		switch {
		case !c.take(piece[:n]):
			return false
		case errors.Is(err, os.ErrDeadlineExceeded):
			c.t.Errorf("client %d waits for a reply", c.id)
			return false
		case err != nil:
			return false
		}
	}
	if c.came > c.wanted {
		c.t.Errorf("client %d got %d replies to %d commands", c.id, c.came, c.wanted)
	}
	return true
}

// take counts the replies and looks at their payloads. It returns false if something is wrong.
func (c *namedClient) take(p []byte) (right bool) {
	for len(p) > 0 {
		n, done, err := c.scanner.Scan(p)
		if err != nil {
			c.t.Errorf("client %d got %.50q: %v", c.id, p, err)
			return false
		}
		if c.begun, right = c.check(append(c.begun, p[:n]...)); !right {
			return false
		}
		if p = p[n:]; done {
			c.came++
		}
	}
	return true
}

// check looks at all payloads in bytes of one reply. It returns what may begin another one.
func (c *namedClient) check(p []byte) (rest []byte, right bool) {
	for {
		from := bytes.IndexByte(p, '<')
		if from < 0 {
			return p[:0], true
		}
		length := bytes.IndexByte(p[from:], '>')
		if length < 0 {
			return p[from:], true
		}
		client, text, _ := strings.Cut(string(p[from+1:from+length]), ".")
		number, err := strconv.Atoi(text)
		if err != nil || client != strconv.Itoa(c.id) {
			c.t.Errorf("client %d got %.50q", c.id, p[from:from+length])
			return nil, false
		}
		if place, known := c.place[number]; number > c.sent || number > 0 && number <= c.got || known && place != c.came {
			c.t.Errorf("client %d got reply %d after %d, as number %d of its pipeline, not %d", c.id, number, c.got, c.came, place)
			return nil, false
		}
		c.got = max(c.got, number)
		p = p[from+length+1:]
	}
}

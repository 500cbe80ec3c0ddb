package proxy

import (
	"bufio"
	"flag"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// crowdTime makes TestCrowd a measurement: how long its clients compete.
var crowdTime = flag.Duration("crowd", 0, "measure for so long how 200 clients share one lock")

// TestCrowd: many clients want one lock, and try again 10 ms after each refusal. With a
// wait in the rule each is served, never two at a time, and none is refused. With
// -crowd it prints how the lock is shared, with a wait and without.
func TestCrowd(t *testing.T) {
	waits := []time.Duration{patience}
	if *crowdTime > 0 {
		waits = []time.Duration{2 * time.Second, 0}
	}
	for _, wait := range waits {
		t.Run("wait "+wait.String(), func(t *testing.T) {
			p, _ := startWaitingProxy(t, wait)
			c := &crowd{T: t, address: p.listener.Addr().String()}
			if *crowdTime == 0 {
				c.compete(20, 5, time.Now().Add(patience))
				if c.together.Load() > 0 {
					t.Errorf("%d times two clients held the lock", c.together.Load())
				}
				if c.refused.Load() > 0 {
					t.Errorf("%d acquires were refused", c.refused.Load())
				}
				return
			}
			c.compete(200, 1<<30, time.Now().Add(*crowdTime))
			c.report()
		})
	}
}

// A crowd is clients of one lock.
type crowd struct {
	*testing.T
	address string
	began   time.Time

	holders, grants   atomic.Int64
	together, refused atomic.Int64

	mu    sync.Mutex
	waits []time.Duration // from the first try to the grant
	turns []int64         // how many others got the lock in that time
}

// compete lets clients take the lock so many times each, or until a time.
func (c *crowd) compete(clients, times int, until time.Time) {
	c.began = time.Now()
	var running sync.WaitGroup
	for i := range clients {
		running.Go(func() { c.client(i, times, until) })
	}
	running.Wait()
}

func (c *crowd) client(number, times int, until time.Time) {
	conn, err := net.Dial("tcp", c.address)
	if err != nil {
		c.Error(err)
		return
	}
	defer conn.Close()
	replies := bufio.NewReader(conn)
	ask := func(line string) string {
		fmt.Fprintf(conn, "%s\r\n", line)
		reply, err := replies.ReadString('\n')
		if err != nil || strings.HasPrefix(reply, "-") {
			c.Errorf("%s: %q, %v", line, reply, err)
		}
		return strings.TrimSpace(reply)
	}
	for n := 0; n < times && time.Now().Before(until) && !c.Failed(); n++ {
		began, before := time.Now(), c.grants.Load()
		for ask(fmt.Sprintf("SET lock:crowd token-of-client-%d-%d NX PX 30000", number, n)) != "+OK" {
			c.refused.Add(1)
			if time.Now().After(until) || c.Failed() {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		waited := time.Since(began)
		if c.holders.Add(1) != 1 {
			c.together.Add(1)
		}
		c.holders.Add(-1)
		turns := c.grants.Add(1) - before - 1
		if reply := ask("DEL lock:crowd"); reply != ":1" {
			c.Errorf("the release: %q", reply)
		}
		c.mu.Lock()
		c.waits, c.turns = append(c.waits, waited), append(c.turns, turns)
		c.mu.Unlock()
	}
}

// report prints the figures. The first waits are shorter, because the line has just begun.
// How many others got the lock during a wait does not depend on the machine's load.
func (c *crowd) report() {
	waits, turns := c.waits[min(400, len(c.waits)):], c.turns[min(400, len(c.turns)):]
	if len(waits) == 0 {
		c.Fatal("no client took the lock a third time")
	}
	slices.Sort(waits)
	var sum time.Duration
	for _, w := range waits {
		sum += w
	}
	mean := sum / time.Duration(len(waits))
	longest := waits[len(waits)-1]
	slices.Sort(turns)
	c.Logf("others served during a wait: median %d, 99 %% %d, most %d", turns[len(turns)/2], turns[len(turns)*99/100], turns[len(turns)-1])
	c.Logf("%.0f hand-overs/s; waits: mean %v, median %v, 99 %% %v, longest %v (%.2f x the mean); %d refusals, %d times two holders",
		float64(len(c.waits))/time.Since(c.began).Seconds(), mean.Round(100*time.Microsecond), waits[len(waits)/2].Round(100*time.Microsecond),
		waits[len(waits)*99/100].Round(100*time.Microsecond), longest.Round(100*time.Microsecond), float64(longest)/float64(mean), c.refused.Load(), c.together.Load())
}

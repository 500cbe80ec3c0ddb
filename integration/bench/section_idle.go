package main

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"
)

const kibibyte = 1 << 10

// measureIdleClients measures the cost of clients that did something once and are idle
// since, and what remains of it after they have left.
func measureIdleClients(b *bench) {
	c := b.startServers(3)
	for _, kind := range []struct {
		what    string
		clients int
		sockets int // per client, in the proxy
		once    func(client *leanClient) error
		wanted  bar
	}{
		{"that have locked once", b.idleClients, 1, lockOnce, atMost(6)},
		{"that have read once from the upstream", b.forwardedIdleClients, 2, getOnce, bar{}},
	} {
		what := fmt.Sprintf("%d idle clients %s: ", kind.clients, kind.what)
		need := kind.clients*kind.sockets + 200
		if limit := raiseOpenFiles(); limit < need {
			b.cannot(what, fmt.Sprintf("needs %d open files, the hard limit is %d", need, limit))
			continue
		}
		all := results{}
		for round := range min(b.rounds, mostCrowds) {
			measured := b.crowd(c, kind.clients, kind.once)
			b.say("%s, round %d, %s%v", b.section, round+1, what, measured)
			all[what] = append(all[what], measured)
		}
		before, there, after := all.of(what, "before"), all.of(what, "there"), all.of(what, "after")
		b.report(what+"resident memory of each", all.of(what, "each").times(1.0/kibibyte), "KiB", kind.wanted,
			medians("MiB, while they are there / before", there.times(1.0/mebibyte), before.times(1.0/mebibyte)))
		b.report(what+"memory after they left / before they came", after.over(before), "x", atMost(1.2),
			medians("MiB", after.times(1.0/mebibyte), before.times(1.0/mebibyte)))
		b.report(what+"memory after as many again / after the first", all.of(what, "again").over(after), "x", atMost(1.1),
			medians("MiB", all.of(what, "again").times(1.0/mebibyte), after.times(1.0/mebibyte)))
		b.report(what+"goroutines left behind", all.of(what, "goroutines"), "goroutines", atMost(0), "")
	}
}

// mostCrowds is the number of rounds: more are not needed for a figure that hardly varies.
const mostCrowds = 3

// lockOnce accepts a refusal: so many clients come at once that masters may be late.
func lockOnce(client *leanClient) error {
	client.script = compareAndDelete
	client.sha = scriptSHA(compareAndDelete)
	_, err := cycle(client, "lock:idle:"+nextToken(), wholeCycle)
	if _, answered := errors.AsType[errorReply](err); answered || errors.Is(err, errNotReleased) {
		return nil
	}
	return err
}

func getOnce(client *leanClient) error {
	_, err := client.do("GET", "key")
	return err
}

// occupancy is what a proxy uses at one moment.
type occupancy struct{ resident, goroutines float64 }

func (p *server) occupancy() occupancy {
	return occupancy{resident(p.Process), p.sum("go_goroutines")}
}

// crowd has clients connect to a proxy of their own, each do something once, stay idle, and
// leave. Then the same number comes again. Other clients work before they come and after
// they have left, or there would be no garbage collection for minutes.
func (b *bench) crowd(c *cluster, clients int, once func(*leanClient) error) figures {
	proxy := b.startProxy(c.addresses(), c.upstream, b.masterTimeout, "")
	defer proxy.Kill()
	workers := b.leanClients(proxy.addr(), 10, compareAndDelete)
	working := paced(time.Millisecond, cycles(workers, wholeCycle))
	before := b.settled(proxy, working, occupancy{})
	var there, after [2]occupancy
	for i := range after {
		there[i] = b.occupied(proxy, clients, once)
		after[i] = b.settled(proxy, working, before)
	}
	return figures{
		"before": before.resident, "there": there[0].resident, "after": after[0].resident, "again": after[1].resident,
		"each":       (there[0].resident - before.resident) / float64(clients),
		"goroutines": max(0, after[1].goroutines-before.goroutines),
	}
}

// occupied returns what the proxy uses while these clients are connected and idle.
func (b *bench) occupied(proxy *server, clients int, once func(*leanClient) error) occupancy {
	present, err := arrive(proxy.addr(), clients, once)
	defer func() {
		for _, client := range present {
			client.close()
		}
	}()
	check(err)
	rest(b.length)
	return proxy.occupancy()
}

// settled returns what the proxy uses when it is back at about this level, or when patience
// is over.
func (b *bench) settled(proxy *server, working []turn, level occupancy) occupancy {
	for until := time.Now().Add(b.patience); ; {
		drive(b.length, working)
		now := proxy.occupancy()
		back := now.goroutines <= level.goroutines && now.resident <= 1.1*level.resident
		if back || level == (occupancy{}) || time.Now().After(until) {
			return now
		}
	}
}

// arrive connects clients, a hundred at a time, and has each do something once. The caller
// closes the clients that it returns, even if it returns an error.
func arrive(addr string, clients int, once func(*leanClient) error) ([]*leanClient, error) {
	const doors = 100
	var (
		mu      sync.Mutex
		present []*leanClient
		failure error
		wg      sync.WaitGroup
	)
	come := func() error {
		client, err := dialLean(addr)
		if err != nil {
			return err
		}
		mu.Lock()
		present = append(present, client)
		mu.Unlock()
		return once(client)
	}
	for door := range doors {
		wg.Go(func() {
			for i := door; i < clients; i += doors {
				if err := come(); err != nil {
					mu.Lock()
					failure = err
					mu.Unlock()
					return
				}
			}
		})
	}
	wg.Wait()
	return present, failure
}

// raiseOpenFiles raises the limit of open files to its maximum, for this process and its
// children, and returns it.
func raiseOpenFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	limit.Cur = limit.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(limit.Max)
}

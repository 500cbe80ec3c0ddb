package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// measureLocksListed measures lock latency while an operator lists locks, again and again,
// of which very many are held. It also measures how long a list takes.
func measureLocksListed(b *bench) {
	const clients = 10
	c := b.startCluster(5)
	c.hold(b.heldLocks)
	lockers := b.leanClients(c.proxy.addr(), clients, compareAndDelete)
	operator := must(dialLean(c.proxy.addr()))
	defer operator.close()
	turns := cycles(lockers, acquireOnly)
	const alone = "alone"
	contestants := []contestant{driven(alone, turns)}
	lists := []struct {
		name string
		args []string
	}{
		{"REDLOCK LOCKS", []string{"REDLOCK", "LOCKS"}},
		{"REDLOCK LOCKS COUNT 10000", []string{"REDLOCK", "LOCKS", "COUNT", "10000"}},
		{"REDLOCK LOCKS, no match", []string{"REDLOCK", "LOCKS", "MATCH", "lock:nosuch*"}},
	}
	for _, list := range lists {
		contestants = append(contestants, operator.listing(list.name, driven(list.name, turns), list.args))
	}
	all := b.alternate(contestants...)
	for _, list := range lists {
		b.compare(all, "p99", "us", list.name, alone, fmt.Sprintf("%d clients, acquire p99 over %d held locks, with a list in a loop", clients, b.heldLocks), atMost(1.2))
		b.report(list.name+" takes, beside the clients", all.of(list.name, "list").times(1000), "ms", bar{}, "")
	}
}

// hold puts locks on all masters, in pipelines of a thousand.
func (c *cluster) hold(locks int) {
	for _, master := range c.masters {
		client := must(dialLean(master.addr()))
		defer client.close()
		for sent := 0; sent < locks; sent += 1000 {
			for n := range 1000 {
				client.queue("SET", fmt.Sprintf("lock:held:%06d", sent+n), fmt.Sprintf("token-of-holder-%06d", sent+n), "PX", "3600000")
			}
			check(client.flush())
			for range 1000 {
				must(client.read())
			}
		}
	}
}

// listing sends a command again and again while inner measures. The figure list is the mean
// time of a reply in seconds. There is always one, so inner may end earlier.
func (c *leanClient) listing(name string, inner contestant, args []string) contestant {
	return contestant{name, func(length time.Duration) figures {
		count, took := 0, time.Duration(0)
		over, done := make(chan struct{}), make(chan error)
		go func() {
			began := time.Now()
			for {
				count++
				c.queue(args...)
				err := c.flush()
				if err == nil {
					err = skipReply(c.reader)
				}
				select {
				case <-over:
				default:
					if err == nil {
						continue
					}
				}
				took = time.Since(began)
				done <- err
				return
			}
		}()
		measured, err := figures(nil), error(nil)
		err = attempt(func() { measured = inner.measure(length) })
		close(over)
		check(errors.Join(err, <-done))
		measured["list"] = took.Seconds() / float64(count)
		return measured
	}}
}

// skipReply reads a reply of RESP2, whatever it holds. An error reply is an error.
func skipReply(r *bufio.Reader) error {
	for left := 1; left > 0; left-- {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) < 3 {
			return fmt.Errorf("reply %q", line)
		}
		kind, rest := line[0], string(line[1:len(line)-2])
		switch kind {
		case '-':
			return errorReply(rest)
		case '*', '$':
			n, err := strconv.Atoi(rest)
			if err != nil {
				return err
			}
			if kind == '*' {
				left += max(n, 0)
			} else if n >= 0 {
				if _, err := io.CopyN(io.Discard, r, int64(n)+2); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

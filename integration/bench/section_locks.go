package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
	"time"
)

// measureLocksListed measures lock latency while an operator lists locks, again and again,
// of which very many are held. It also measures how long a list takes.
func measureLocksListed(ctx context.Context, b *bench) {
	const clients = 10
	c := b.startCluster(ctx, 5)
	check(c.hold(ctx, b.heldLocks))
	lockers := b.leanClients(ctx, c.proxy.addr(), clients, compareAndDelete)
	operator := must(dialLean(ctx, c.proxy.addr()))
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
	all := must(b.alternate(ctx, contestants...))
	for _, list := range lists {
		b.report(fmt.Sprintf("%d clients, acquire p99 over %d held locks: with %s in a loop / alone", clients, b.heldLocks, list.name),
			all.ratio("p99", list.name, alone), "x", atMost(1.2),
			medians("us", all.of(list.name, "p99"), all.of(alone, "p99"))+all.failures(list.name, alone))
		b.report(list.name+" takes, beside the clients", all.of(list.name, "list").times(1000), "ms", bar{}, "")
	}
}

// hold puts locks on all masters, in one pipeline for each.
func (c *cluster) hold(ctx context.Context, locks int) error {
	for _, master := range c.masters {
		client, err := dialLean(ctx, master.addr())
		if err != nil {
			return err
		}
		defer client.close()
		for sent := 0; sent < locks; {
			until := min(locks, sent+1000)
			for n := sent; n < until; n++ {
				client.queue("SET", fmt.Sprintf("lock:held:%06d", n), fmt.Sprintf("token-of-holder-%06d", n), "PX", "3600000")
			}
			if err := client.flush(); err != nil {
				return err
			}
			for ; sent < until; sent++ {
				if _, err := client.read(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// listing sends a command again and again while inner measures. The figure list is the mean
// time of a reply in seconds. There is always one, so inner may end earlier.
func (c *leanClient) listing(name string, inner contestant, args []string) contestant {
	return contestant{name, func(ctx context.Context, length time.Duration) (figures, error) {
		over, end := context.WithCancel(ctx)
		defer end()
		type lists struct {
			count int
			took  time.Duration
			err   error
		}
		done := make(chan lists)
		go func() {
			var l lists
			began := time.Now()
			for l.err == nil && (l.count == 0 || over.Err() == nil) {
				l.count++
				c.queue(args...)
				if l.err = c.flush(); l.err == nil {
					l.err = skipReply(c.reader)
				}
			}
			l.took = time.Since(began)
			done <- l
		}()
		measured, err := inner.measure(ctx, length)
		end()
		l := <-done
		if err == nil {
			err = l.err
		}
		if err != nil {
			return nil, err
		}
		measured["list"] = l.took.Seconds() / float64(l.count)
		return measured, nil
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

package redlock

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"redlock-proxy/redlock/resp"
)

// Worlds of counters: strings, fields of hashes and members of sorted sets that the clients of several
// proxies count up. Masters restart with their data, are cut off and answer late. What a client was told
// never goes back: no number is told twice, none is below one that was told before it was asked for, and
// in the end each counter has the largest number that was told, or more.
//
// A counter has no TTL, so no master forgets in these worlds.

// A counted is what was told of one counter.
type counted struct {
	told map[int64]string // to whom each number was told
	last int64            // the largest of them
}

// counterWorld makes the world of a seed one of counters.
func (s *simulation) counterWorld() {
	s.counters = map[string]*counted{}
	s.plan.keys = nil
	for _, command := range []string{"INCR", "HINCRBY", "ZINCRBY"} {
		s.plan.keys = append(s.plan.keys, simKey{name: "lock:" + command, style: counting, proxy: -1, round: new(int)})
	}
	s.plan.proxies, s.plan.clients = 3, 3
	s.plan.faults = slices.DeleteFunc(slices.Clone(simFaults), func(f simFault) bool { return f.forgets })
}

// countUp counts once, and checks what the client is told.
func (c *simClient) countUp(l *Locker) {
	command, names := c.counts(c.random.IntN(3))
	what := string(bytes.Join(names, []byte(" ")))
	x := c.s.counters[what]
	if x == nil {
		x = &counted{told: map[int64]string{}}
		c.s.counters[what] = x
	}
	before := x.last
	o := c.askOnLoop(context.Background(), func(ctx context.Context) Outcome {
		return l.Run(ctx, RunRequest{Keys: [][]byte{c.lock}, Args: command})
	})
	c.s.log.tell(c, "counts %s up through %s: %v %q", what, c.proxy.name, o.Verdict, o.Reply)
	c.note(o)
	if o.Verdict != Won || !c.connected() {
		return
	}
	n := numberIn(o.Reply)
	switch by := x.told[n]; {
	case by != "":
		c.wrong("%s was told %d of %s, and %s before", c.name, n, what, by)
	case n <= before:
		c.wrong("%s was told %d of %s, when %d had been told", c.name, n, what, before)
	}
	x.told[n], x.last = c.name, max(x.last, n)
}

func (c *simClient) wrong(format string, args ...any) {
	c.s.history.subject = string(c.lock)
	c.s.history.fail(format, args...)
}

// counts is the command that counts, and the names of what it counts. A hash and a sorted set have three
// counters.
func (c *simClient) counts(part int) (command, names [][]byte) {
	field := fmt.Appendf(nil, "f%d", part)
	switch name := c.key.name[len("lock:"):]; name {
	case "HINCRBY":
		return [][]byte{[]byte(name), c.lock, field, []byte("1")}, [][]byte{c.lock, field}
	case "ZINCRBY":
		return [][]byte{[]byte(name), c.lock, []byte("1"), field}, [][]byte{c.lock, field}
	}
	return [][]byte{[]byte("INCR"), c.lock}, [][]byte{c.lock}
}

// numberIn reads an integer, or a score.
func numberIn(reply []byte) int64 {
	if n, ok := resp.ParseInteger(reply); ok {
		return n
	}
	text, _ := resp.ParseBulk(reply)
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		panic(fmt.Sprintf("no number: %q", reply))
	}
	return n
}

// countersGoOn checks, when all is well, that each counter goes on behind all that was told.
func (s *simulation) countersGoOn() {
	for i, k := range s.plan.keys {
		for part := range 3 {
			c := s.newClient(i, k, 9)
			c.lock, c.proxy = k.current(), s.proxies[part]
			command, names := c.counts(part)
			x := s.counters[string(bytes.Join(names, []byte(" ")))]
			if x == nil {
				continue
			}
			var o Outcome
			for range 5 {
				if o = c.proxy.lock.Run(context.Background(), RunRequest{Keys: names[:1], Args: command}); o.Verdict == Won {
					break
				}
				s.sleep(4 * time.Second) // copies that differ are made equal
			}
			if n := int64(0); o.Verdict != Won {
				c.wrong("%s cannot be counted when all is well: %v", names, o.Verdict)
			} else if n = numberIn(o.Reply); n <= x.last {
				c.wrong("%s goes on with %d, when %d had been told", names, n, x.last)
			} else {
				x.last = n
			}
		}
	}
}

// What a client is told of a counter never goes back, whatever goes wrong.
func TestSimulationCounts(t *testing.T) {
	var all simCounts
	seeds := simSeeds(t, 4)
	simulateAll(t, seeds, simOptions{counts: true}, func(s *simulation) { all.add(s.history.counts) })
	t.Logf("%+v", all)
	if runs := len(seeds); runs >= 10 && (all.won < 50*runs || all.noQuorum < runs) {
		t.Errorf("too little happened: %+v", all)
	}
}

package integration

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
)

// TestCorpus runs what lock libraries send on lock keys through the proxy and
// on a plain Redis: the same bytes come back, in RESP2 and RESP3, and every
// master ends with what the plain Redis ends with.
func TestCorpus(t *testing.T) {
	c := startCluster(t, proxyOptions{})
	plain := startRedis(t, "plain")
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			d := differential{plain: plain, addr: c.proxy.addr(), protocol: protocol, states: c.waitQuorumStates}
			d.run(t, corpus())
		})
	}
}

// TestCorpusIsRepeatable holds the corpus and the examples to their own
// rules: two plain servers must agree before a difference means anything.
// Rules about what the proxy alone does have nothing to hold against it here.
func TestCorpusIsRepeatable(t *testing.T) {
	plain, twin := startRedis(t, "plain"), startRedis(t, "twin")
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			d := differential{plain: plain, addr: twin.addr(), protocol: protocol}
			scenarios := slices.Concat(corpus(), exampleScenarios(t, plain))
			d.run(t, slices.DeleteFunc(scenarios, scenario.declined))
		})
	}
}

// TestEveryKeyedCommand does for every command with keys what TestCorpus does
// for the corpus.
func TestEveryKeyedCommand(t *testing.T) {
	c := startCluster(t, proxyOptions{})
	plain := startRedis(t, "plain")
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			d := differential{plain: plain, addr: c.proxy.addr(), protocol: protocol, states: c.waitQuorumStates}
			d.run(t, exampleScenarios(t, plain))
		})
	}
}

// differential runs scenarios on a plain server and on another address.
type differential struct {
	plain    *redisServer
	addr     string
	protocol int
	states   func(t testing.TB, plain *redisServer, keys []string) error // nil: replies only
	reword   func(reply []byte) []byte                                   // what plain says, as the proxy would say it
}

func (d differential) run(t *testing.T, scenarios []scenario) {
	t.Helper()
	commands, differences := 0, 0
	plain, proxied := d.dial(t)
	for i, each := range scenarios {
		n := fmt.Sprintf("%d-%d", d.protocol, i)
		numbered := each.numbered(n)
		commands += len(numbered.steps)
		err := numbered.run(plain, proxied)
		if err == nil && d.states != nil {
			if err = d.states(t, d.plain, each.keys(n)); err != nil {
				err = fmt.Errorf("scenario %q, afterwards: %w", each.name, err)
			}
		}
		if err == nil {
			continue
		}
		t.Error(err)
		if differences++; differences == 100 {
			t.Fatal("too many differences")
		}
		// A stopped scenario may leave a transaction or unread replies behind.
		plain, proxied = d.dial(t)
	}
	t.Logf("%d scenarios, %d commands, %d differences", len(scenarios), commands, differences)
}

func (d differential) dial(t *testing.T) (plain, proxied *wire) {
	plain, proxied = dialWire(t, d.plain.addr(), d.protocol), dialWire(t, d.addr, d.protocol)
	plain.reword = d.reword
	return plain, proxied
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}

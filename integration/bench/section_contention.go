package main

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// measureContention has many clients want one lock. Each client tries, rests 1 to 5 ms after
// a refusal, and tries again. It holds the lock for 1 ms.
func measureContention(b *bench) {
	clients := b.contenders
	c := b.startCluster(5)
	of := b.lockers(c, clients)
	all := b.alternate(
		contending(lean, of[lean], c.proxy),
		contending(redsyncProxy, of[redsyncProxy], c.proxy),
		contending(redsyncDirect, of[redsyncDirect], nil))
	for _, contestant := range []string{lean, redsyncProxy} {
		b.compare(all, "rate", "hand-overs/s", contestant, redsyncDirect, fmt.Sprintf("%d clients on one key, hand-overs", clients), atLeast(2))
		b.report(contestant+": ballots per hand-over", all.of(contestant, "ballots"), "ballots", bar{},
			fmt.Sprintf("%s attempts per hand-over", amount(all.of(contestant, "attempts").median(), "")))
	}
	var together spread
	for round := range b.rounds {
		together = append(together, all[lean][round]["together"]+all[redsyncProxy][round]["together"])
	}
	b.report("through the proxy: turns with two holders at a time", together, "turns", atMost(0), "")
}

// contention is the state that the clients of one lock share.
type contention struct {
	key      string
	over     time.Time
	holders  atomic.Int64
	attempts atomic.Int64
	together atomic.Int64 // the number of times that another client held it, too
}

// mostCrowded is the shortest time in which such clients manage a hand-over or two if they
// talk to the masters directly.
const mostCrowded = 500 * time.Millisecond

// contending measures hand-overs and, with a proxy, its ballots per hand-over.
func contending(name string, clients []lockClient, proxy *server) contestant {
	ballots := func() float64 {
		if proxy == nil {
			return 0
		}
		return proxy.sum("redlock_ballot_duration_seconds_count")
	}
	return contestant{name, func(length time.Duration) figures {
		length = max(length, mostCrowded)
		// A lock that could not be released must not block later runs.
		shared := contention{key: "lock:contended:" + nextToken(), over: time.Now().Add(length)}
		turns := make([]turn, len(clients))
		for i, client := range clients {
			turns[i] = func() (time.Duration, error) { return shared.handOver(client) }
		}
		before := ballots()
		made := drive(length, turns)
		handOvers := float64(len(made.latencies))
		measured := made.figures()
		measured["ballots"] = (ballots() - before) / handOvers
		measured["attempts"] = float64(shared.attempts.Load()) / handOvers
		measured["together"] = float64(shared.together.Load())
		return measured
	}}
}

// handOver is one turn: the client gets the lock, holds it, and releases it.
func (s *contention) handOver(client lockClient) (time.Duration, error) {
	began := time.Now()
	for {
		s.attempts.Add(1)
		held, err := client.acquire(s.key)
		if err != nil {
			return 0, err
		}
		if held {
			break
		}
		rest(time.Millisecond + rand.N(4*time.Millisecond))
		if running.Err() != nil || time.Now().After(s.over) {
			return 0, errOver
		}
	}
	took := time.Since(began)
	if s.holders.Add(1) != 1 {
		s.together.Add(1)
	}
	rest(time.Millisecond)
	s.holders.Add(-1)
	return took, client.release(s.key)
}

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// measureContention has many clients want one lock. Each client tries, rests 1 to 5 ms after
// a refusal, and tries again. It holds the lock for 1 ms.
func measureContention(ctx context.Context, b *bench) {
	clients := b.contenders
	c := b.startCluster(ctx, 5)
	of := b.lockers(ctx, c, clients)
	all := must(b.alternate(ctx,
		contending(lean, of[lean], c.proxy),
		contending(redsyncProxy, of[redsyncProxy], c.proxy),
		contending(redsyncDirect, of[redsyncDirect], nil)))
	for _, contestant := range []string{lean, redsyncProxy} {
		b.report(fmt.Sprintf("%d clients on one key, hand-overs: %s / %s", clients, contestant, redsyncDirect),
			all.ratio("rate", contestant, redsyncDirect), "x", atLeast(2),
			medians("hand-overs/s", all.of(contestant, "rate"), all.of(redsyncDirect, "rate"))+all.failures(contestant, redsyncDirect))
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
func contending(name string, clients []lockClient, proxy *proxyServer) contestant {
	return contestant{name, func(ctx context.Context, length time.Duration) (figures, error) {
		length = max(length, mostCrowded)
		// A lock that could not be released must not block later runs.
		shared := contention{key: "lock:contended:" + nextToken(), over: time.Now().Add(length)}
		turns := make([]turn, len(clients))
		for i, client := range clients {
			turns[i] = func(ctx context.Context) (time.Duration, error) { return shared.handOver(ctx, client) }
		}
		before, err := ballots(ctx, proxy)
		if err != nil {
			return nil, err
		}
		made, err := drive(ctx, length, turns)
		if err != nil {
			return nil, err
		}
		after, err := ballots(ctx, proxy)
		handOvers := float64(len(made.latencies))
		measured := made.figures()
		measured["ballots"] = (after - before) / handOvers
		measured["attempts"] = float64(shared.attempts.Load()) / handOvers
		measured["together"] = float64(shared.together.Load())
		return measured, err
	}}
}

// handOver is one turn: the client gets the lock, holds it, and releases it.
func (s *contention) handOver(ctx context.Context, client lockClient) (time.Duration, error) {
	began := time.Now()
	for {
		s.attempts.Add(1)
		held, err := client.acquire(ctx, s.key)
		if err != nil {
			return 0, err
		}
		if held {
			break
		}
		rest(ctx, time.Millisecond+rand.N(4*time.Millisecond))
		if ctx.Err() != nil || time.Now().After(s.over) {
			return 0, errOver
		}
	}
	took := time.Since(began)
	if s.holders.Add(1) != 1 {
		s.together.Add(1)
	}
	rest(ctx, time.Millisecond)
	s.holders.Add(-1)
	return took, client.release(ctx, s.key)
}

// ballots returns the number of ballots that the proxy has held so far.
func ballots(ctx context.Context, proxy *proxyServer) (float64, error) {
	if proxy == nil {
		return 0, nil
	}
	read, err := proxy.metrics(ctx)
	return read.sum("redlock_ballot_duration_seconds_count"), err
}

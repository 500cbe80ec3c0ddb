package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A turn is what a client does once, again and again. It returns how long the
// part of it took that is measured.
type turn func(ctx context.Context) (time.Duration, error)

// load is what came of clients that took turns for a while.
type load struct {
	elapsed   time.Duration
	latencies []time.Duration // of the turns that went well, sorted
	failed    int
	failure   error // the first
}

// drive lets every client take turns, each in a goroutine of its own, until
// length is over. Single failures are counted; if most turns fail there is
// nothing to measure, and that is the error.
func drive(ctx context.Context, length time.Duration, clients []turn) (load, error) {
	parts := make([]load, len(clients))
	began := time.Now()
	until := began.Add(length)
	var wg sync.WaitGroup
	for i, client := range clients {
		wg.Go(func() { parts[i] = takeTurns(ctx, until, client) })
	}
	wg.Wait()
	whole := load{elapsed: time.Since(began)}
	for _, each := range parts {
		whole.latencies = append(whole.latencies, each.latencies...)
		whole.failed += each.failed
		if whole.failure == nil {
			whole.failure = each.failure
		}
	}
	slices.Sort(whole.latencies)
	if err := ctx.Err(); err != nil {
		return whole, err
	}
	if whole.failed >= max(1, len(whole.latencies)) {
		return whole, fmt.Errorf("%d turns failed and %d went well: %w", whole.failed, len(whole.latencies), whole.failure)
	}
	if len(whole.latencies) == 0 {
		return whole, errNoTurn
	}
	return whole, nil
}

var errNoTurn = errors.New("no turn ended while there was time")

// errOver is what a turn returns that came to nothing because the time was
// over. It is no failure.
var errOver = errors.New("the time is over")

func takeTurns(ctx context.Context, until time.Time, client turn) load {
	var own load
	for ctx.Err() == nil {
		took, err := client(ctx)
		switch {
		case err == nil:
			own.latencies = append(own.latencies, took)
		case err != errOver:
			if own.failed++; own.failure == nil {
				own.failure = err
			}
			rest(ctx, time.Millisecond) // a server that is gone is not asked in a tight loop
		}
		if time.Now().After(until) {
			break
		}
	}
	return own
}

// rest waits, but no longer than ctx lasts.
func rest(ctx context.Context, length time.Duration) {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// paced has a client rest after each turn.
func paced(pause time.Duration, clients []turn) []turn {
	slow := make([]turn, len(clients))
	for i, client := range clients {
		slow[i] = func(ctx context.Context) (time.Duration, error) {
			took, err := client(ctx)
			rest(ctx, pause)
			return took, err
		}
	}
	return slow
}

func (l load) rate() float64 { return float64(len(l.latencies)) / l.elapsed.Seconds() }

// percentile is in microseconds.
func (l load) percentile(share float64) float64 {
	if len(l.latencies) == 0 {
		return 0
	}
	at := min(int(share*float64(len(l.latencies))), len(l.latencies)-1)
	return float64(l.latencies[at].Nanoseconds()) / 1000
}

// figures are what most sections want of a load.
func (l load) figures() figures {
	return figures{
		"rate": l.rate(), "p50": l.percentile(0.50), "p99": l.percentile(0.99),
		"turns": float64(len(l.latencies)), "failed": float64(l.failed),
	}
}

// driven is a contestant whose figures are those of the load that these
// clients make.
func driven(name string, clients []turn) contestant {
	return contestant{name, func(ctx context.Context, length time.Duration) (figures, error) {
		made, err := drive(ctx, length, clients)
		return made.figures(), err
	}}
}

func clientCount(n int) string {
	if n == 1 {
		return "1 client"
	}
	return fmt.Sprintf("%d clients", n)
}

// failures of all rounds of these contestants, as a remark for the table; ""
// if there were none.
func (r results) failures(contestants ...string) string {
	var failed float64
	for _, name := range contestants {
		for _, each := range r[name] {
			failed += each["failed"]
		}
	}
	if failed == 0 {
		return ""
	}
	return fmt.Sprintf("; %.0f turns failed", failed)
}

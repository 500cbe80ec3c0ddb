package main

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A turn is what a client does again and again. It returns the duration of the part that is
// measured.
type turn func() (time.Duration, error)

// load is the result of clients that took turns for a while.
type load struct {
	elapsed   time.Duration
	latencies []time.Duration // of the successful turns, sorted
	failed    int
	failure   error // the first failure
}

// drive lets every client take turns, each in its own goroutine, until length is over. It
// counts single failures. If most turns fail, there is nothing to measure.
func drive(length time.Duration, clients []turn) load {
	parts := make([]load, len(clients))
	began := time.Now()
	until := began.Add(length)
	var wg sync.WaitGroup
	for i, client := range clients {
		wg.Go(func() { parts[i] = takeTurns(until, client) })
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
	check(running.Err())
	if whole.failed >= max(1, len(whole.latencies)) {
		check(fmt.Errorf("%d turns failed and %d went well: %w", whole.failed, len(whole.latencies), whole.failure))
	}
	if len(whole.latencies) == 0 {
		check(errNoTurn)
	}
	return whole
}

var errNoTurn = errors.New("no turn ended while there was time")

// errOver is the error of a turn that did not complete because the time was over. It does
// not count as a failure.
var errOver = errors.New("the time is over")

func takeTurns(until time.Time, client turn) load {
	var own load
	for running.Err() == nil {
		took, err := client()
		switch {
		case err == nil:
			own.latencies = append(own.latencies, took)
		case err != errOver:
			if own.failed++; own.failure == nil {
				own.failure = err
			}
			rest(time.Millisecond) // no tight loop if the server is gone
		}
		if time.Now().After(until) {
			break
		}
	}
	return own
}

// rest waits, at most until the run is interrupted.
func rest(length time.Duration) {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-running.Done():
	case <-timer.C:
	}
}

// paced makes a client rest after each turn.
func paced(pause time.Duration, clients []turn) []turn {
	slow := make([]turn, len(clients))
	for i, client := range clients {
		slow[i] = func() (time.Duration, error) {
			took, err := client()
			rest(pause)
			return took, err
		}
	}
	return slow
}

func (l load) rate() float64 { return float64(len(l.latencies)) / l.elapsed.Seconds() }

// percentile returns a latency in microseconds.
func (l load) percentile(share float64) float64 {
	if len(l.latencies) == 0 {
		return 0
	}
	at := min(int(share*float64(len(l.latencies))), len(l.latencies)-1)
	return float64(l.latencies[at].Nanoseconds()) / 1000
}

// figures returns the figures of a load that most sections use.
func (l load) figures() figures {
	return figures{
		"rate": l.rate(), "p50": l.percentile(0.50), "p99": l.percentile(0.99),
		"turns": float64(len(l.latencies)), "failed": float64(l.failed),
	}
}

// driven makes a contestant from clients. Its figures are those of their load.
func driven(name string, clients []turn) contestant {
	return contestant{name, func(length time.Duration) figures { return drive(length, clients).figures() }}
}

func clientCount(n int) string {
	if n == 1 {
		return "1 client"
	}
	return fmt.Sprintf("%d clients", n)
}

// failures adds up the failures of these contestants in all rounds, as a remark for the
// table. It returns "" if there were none.
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

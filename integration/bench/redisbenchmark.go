package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"redlock-proxy/integration/child"
)

// redisBenchmark is redis-benchmark with some arguments. It remembers its rate, so that the
// next run has the right length.
type redisBenchmark struct {
	port     int
	clients  int
	pipeline int
	command  []string // the words of one command
	rate     float64
}

func (r *redisBenchmark) args(requests int) []string {
	return append([]string{
		"-h", "127.0.0.1", "-p", strconv.Itoa(r.port), "-c", strconv.Itoa(r.clients), "-P", strconv.Itoa(r.pipeline),
		"-n", strconv.Itoa(requests), "-r", "1000000", "--csv",
	}, r.command...)
}

// measure runs redis-benchmark for about length.
func (r *redisBenchmark) measure(ctx context.Context, length time.Duration) (figures, error) {
	if r.rate == 0 {
		r.rate = 20_000
		if _, err := r.measure(ctx, 50*time.Millisecond); err != nil {
			return nil, err
		}
	}
	requests := max(r.clients*r.pipeline, int(r.rate*length.Seconds()))
	output, err := exec.CommandContext(ctx, "redis-benchmark", r.args(requests)...).Output()
	if err != nil {
		return nil, fmt.Errorf("redis-benchmark (Debian package redis-tools): %w", err)
	}
	measured, err := readReport(string(output))
	if err == nil {
		r.rate = measured["rate"]
		measured["turns"] = float64(requests)
	}
	return measured, err
}

// spentBy is measure, and adds the CPU time per command of the server, in microseconds.
func (r *redisBenchmark) spentBy(server *child.Process) func(ctx context.Context, length time.Duration) (figures, error) {
	return func(ctx context.Context, length time.Duration) (figures, error) {
		before, err := cpu(server)
		if err != nil {
			return nil, err
		}
		measured, err := r.measure(ctx, length)
		if err != nil {
			return nil, err
		}
		after, err := cpu(server)
		measured["cpu"] = microseconds(after-before) / measured["turns"]
		return measured, err
	}
}

// readReport parses the output of --csv: headings and one line of figures.
func readReport(text string) (figures, error) {
	at := strings.Index(text, `"test","rps"`)
	if at < 0 {
		return nil, fmt.Errorf("redis-benchmark printed %q", text)
	}
	lines, err := csv.NewReader(strings.NewReader(text[at:])).ReadAll()
	if err != nil || len(lines) < 2 || len(lines[1]) < 7 {
		return nil, fmt.Errorf("redis-benchmark printed %q: %w", text, err)
	}
	measured := figures{}
	for i, name := range map[int]string{1: "rate", 4: "p50", 6: "p99"} {
		value, err := strconv.ParseFloat(lines[1][i], 64)
		if err != nil {
			return nil, err
		}
		measured[name] = value
	}
	return measured, nil
}

// saturate runs redis-benchmark without end while inner measures.
func (r *redisBenchmark) saturate(name string, inner contestant) contestant {
	return contestant{name, func(ctx context.Context, length time.Duration) (figures, error) {
		load, err := child.Start("redis-benchmark", "redis-benchmark", r.args(1<<30)...)
		if err != nil {
			return nil, err
		}
		defer load.Kill()
		rest(ctx, length/10) // until all its clients are at work
		measured, err := inner.measure(ctx, length)
		select {
		case <-load.Done:
			err = errors.Join(err, fmt.Errorf("the load ended early:\n%s", load.Log.Tail(20)))
		default:
		}
		return measured, err
	}}
}

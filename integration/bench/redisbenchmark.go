package main

import (
	"encoding/csv"
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
func (r *redisBenchmark) measure(length time.Duration) figures {
	if r.rate == 0 {
		r.rate = 20_000
		r.measure(50 * time.Millisecond)
	}
	requests := max(r.clients*r.pipeline, int(r.rate*length.Seconds()))
	output, err := exec.CommandContext(running, "redis-benchmark", r.args(requests)...).Output()
	if err != nil {
		check(fmt.Errorf("redis-benchmark (Debian package redis-tools): %w", err))
	}
	measured := readReport(string(output))
	r.rate, measured["turns"] = measured["rate"], float64(requests)
	return measured
}

// spentBy is a contestant whose figures have the CPU time per command of the server, too, in microseconds.
func (r *redisBenchmark) spentBy(name string, server *child.Process) contestant {
	return contestant{name, func(length time.Duration) figures {
		before := cpu(server)
		measured := r.measure(length)
		measured["cpu"] = microseconds(cpu(server)-before) / measured["turns"]
		return measured
	}}
}

// readReport parses the output of --csv: headings and one line of figures.
func readReport(text string) figures {
	at := strings.Index(text, `"test","rps"`)
	lines, err := csv.NewReader(strings.NewReader(text[max(at, 0):])).ReadAll()
	if err != nil || at < 0 || len(lines) < 2 || len(lines[1]) < 7 {
		check(fmt.Errorf("redis-benchmark printed %q: %w", text, err))
	}
	measured := figures{}
	for i, name := range map[int]string{1: "rate", 4: "p50", 6: "p99"} {
		measured[name] = must(strconv.ParseFloat(lines[1][i], 64))
	}
	return measured
}

// saturate runs redis-benchmark without end while inner measures.
func (r *redisBenchmark) saturate(name string, inner contestant) contestant {
	return contestant{name, func(length time.Duration) figures {
		load := must(child.Start("redis-benchmark", "redis-benchmark", r.args(1<<30)...))
		defer load.Kill()
		rest(length / 10) // until all its clients are at work
		measured := inner.measure(length)
		select {
		case <-load.Done:
			check(fmt.Errorf("the load ended early:\n%s", load.Log.Tail(20)))
		default:
		}
		return measured
	}}
}

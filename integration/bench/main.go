// Command bench compares the proxy with the alternatives: redsync talking to the masters
// directly, a plain byte pump, twemproxy, and plain Redis. It builds the proxy, starts every
// server as its own child on free ports, and prints one table of ratios:
//
//	go run ./integration/bench            all sections, about a quarter of an hour
//	go run ./integration/bench -only 'cycles|cpu' -rounds 7
//
// Servers and clients share one machine, so only a ratio within one run means anything. The
// contestants take turns in several rounds. Each round gives one ratio. The table has the
// median and the extremes of these ratios.
//
// It needs redis-server and redis-benchmark (Debian packages redis-server and redis-tools).
// If nutcracker, which is twemproxy, or etcd is missing, its rows say so.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// sections run in this order. Each starts its own servers.
var sections = []section{
	{"cycles", measureCycles},
	{"plain", measurePlain},
	{"oneconnection", measureOneConnection},
	{"set-size", measureSetSizes},
	{"cpu", measureCPU},
	{"examined", measureExamined},
	{"contention", measureContention},
	{"hung", measureHungMasters},
	{"gap", measureGap},
	{"locks-listed", measureLocksListed},
	{"passthrough", measurePassThrough},
	{"large", measureLarge},
	{"mixed", measureMixed},
	{"short", measureShortSessions},
	{"idle", measureIdleClients},
}

func main() {
	rounds := flag.Int("rounds", 5, "how often each measurement is repeated; what is compared takes turns")
	length := flag.Duration("time", 2*time.Second, "how long one measurement lasts")
	only := flag.String("only", "", "run the sections that match this regular `expression`: "+strings.Join(sectionNames(), " "))
	markdown := flag.Bool("markdown", false, "print the table as Markdown")
	flag.Parse()
	chosen, err := regexp.Compile(*only)
	if err != nil || flag.NArg() > 0 || *rounds < 1 || *length <= 0 {
		flag.Usage()
		os.Exit(2)
	}
	var release func()
	running, release = signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer release()
	b := &bench{
		rounds: *rounds, length: *length, progress: os.Stderr, building: []string{"-trimpath"},
		idleClients: 10_000, forwardedIdleClients: 4_000, largeReply: 100 << 20, largeValues: 300, contenders: 200, heldLocks: 100_000, masterTimeout: shippedTimeout, patience: 15 * time.Second,
	}
	before := loadAverage()
	failed := b.run(chosen)
	fmt.Printf("%s\n%d rounds of %v each; load average %s before, %s after\n\n",
		machine(), b.rounds, b.length, before, loadAverage())
	if *markdown {
		printMarkdown(os.Stdout, b.rows)
	} else {
		printText(os.Stdout, b.rows)
	}
	fmt.Print(allocationsNote)
	if failed != nil {
		fmt.Fprintln(os.Stderr, "bench:", failed)
		os.Exit(1)
	}
}

// allocationsNote names the Go benchmarks that count allocations. They are beside the code
// that they measure.
const allocationsNote = `
Allocations (per forwarded command, per lock command, in the scanner and the tally):
    go test -run '^$' -bench . -benchmem ./proxy ./redlock
`

func sectionNames() []string {
	var names []string
	for _, s := range sections {
		names = append(names, s.name)
	}
	return names
}

// machine describes the machine of the measurements.
func machine() string {
	model := "unknown CPU"
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if found := regexp.MustCompile(`model name\s*:\s*(.*)`).FindSubmatch(info); found != nil {
			model = string(found[1])
		}
	}
	return fmt.Sprintf("%d cores (%s), %s, %s, %s", runtime.NumCPU(), model, runtime.Version(),
		programVersion("redis-server", `v=([0-9.]+)`, "--version"), programVersion("nutcracker", `nutcracker-([0-9.]+)`, "--version"))
}

func loadAverage() string {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

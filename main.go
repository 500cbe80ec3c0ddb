// Command redlock-proxy speaks Redis to existing clients, turns their locks
// into Redlock over several independent masters, and hands every other command
// to their own Redis.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"redlock-proxy/proxy"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Exit codes.
const (
	exitFine  = 0
	exitError = 1 // while running, or what -check or -healthcheck found
	exitUsage = 2 // flags or configuration
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	flags := flag.NewFlagSet("redlock-proxy", flag.ContinueOnError)
	file := flags.String("config", "", "read the configuration from `FILE` (default: config.yaml here if there is one, else built-in values)")
	newSet := flags.Bool("new", false, "no lock can be held on these masters yet; recorded for certifying masters, which this version does not do, so it changes nothing")
	check := flags.Bool("check", false, "show the configuration, ask every server what it is, list every hazard, and exit 0 or 1")
	healthcheck := flags.Bool("healthcheck", false, "ask the process that runs with this configuration whether it lives, and exit 0 or 1")
	version := flags.Bool("version", false, "print the version")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return exitFine
	case err != nil:
		return exitUsage
	case flags.NArg() > 0:
		return fail(exitUsage, fmt.Errorf("unexpected argument %q; -h shows what is allowed", flags.Arg(0)))
	case *version:
		fmt.Println("redlock-proxy", proxy.Version())
		return exitFine
	}
	cfg, err := proxy.Load(*file)
	if err != nil {
		return fail(exitUsage, err)
	}
	cfg.NewSet = *newSet

	ctx, release := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer release()
	context.AfterFunc(ctx, release) // a second signal ends the process at once
	switch {
	case *healthcheck:
		if err := proxy.Healthcheck(ctx, cfg); err != nil {
			return fail(exitError, err)
		}
		return exitFine
	case *check:
		if !proxy.Check(ctx, cfg, os.Stdout) {
			return exitError
		}
		return exitFine
	}

	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	p, err := proxy.New(cfg, proxy.NewLogger(cfg, os.Stderr), registry)
	if err != nil {
		return fail(exitError, err)
	}
	if cfg.Log.Format == "text" {
		fmt.Print(p.Banner())
	}
	if err := p.Serve(ctx); err != nil {
		return fail(exitError, err)
	}
	return exitFine
}

// fail prints an error, each of its lines as one of ours.
func fail(code int, err error) int {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintln(os.Stderr, "redlock-proxy:", line)
	}
	return code
}

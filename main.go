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
	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/inspect"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Exit codes.
const (
	exitFine  = 0
	exitError = 1 // while running, or what -check, -healthcheck or -reload found
	exitUsage = 2 // flags or configuration
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	flags := flag.NewFlagSet("redlock-proxy", flag.ContinueOnError)
	file := flags.String("config", "", "read the configuration from `FILE` (default: config.yaml here)")
	demo := flags.Bool("demo", false, "try the proxy out without a configuration: embedded servers, which forget all locks when the process ends")
	newSet := flags.Bool("new", false, "no lock can be held on these masters yet: they may form a new set that votes at once, not only after restart_delay, also where a set has just begun; for their first start only, and refused where they have belonged to a set for an hour")
	check := flags.Bool("check", false, "show what differs from the defaults, ask every server what it is, list every hazard, and exit 0 or 1; nothing is changed, so it is also the dry run of a reload")
	all := flags.Bool("all", false, "with -check: show every setting")
	healthcheck := flags.Bool("healthcheck", false, "ask the process that runs with this configuration whether it lives, and exit 0 or 1; of the file only the admin address matters")
	reload := flags.Bool("reload", false, "have the process that runs with this configuration read its file again, as SIGHUP does, say what came of it, and exit 0 or 1")
	moveKeys := flags.Bool("move-keys", false, "with -reload: changed lock rules may move keys to or from the lock masters; commands on these are answered TRYAGAIN until locks from before have ended. Without it such a reload is refused and says which keys and until when")
	version := flags.Bool("version", false, "print the version")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return exitFine
	case err != nil:
		return exitUsage
	case flags.NArg() > 0:
		return fail(exitUsage, fmt.Errorf("unexpected argument %q; -h shows what is allowed", flags.Arg(0)))
	case *demo && *file != "":
		return fail(exitUsage, errors.New("-demo reads no configuration, so it cannot be given together with -config"))
	case *moveKeys && !*reload:
		return fail(exitUsage, errors.New("-move-keys is for -reload"))
	case *all && !*check:
		return fail(exitUsage, errors.New("-all is for -check"))
	case *version:
		fmt.Println("redlock-proxy", proxy.Version())
		return exitFine
	}
	ctx, release := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer release()
	context.AfterFunc(ctx, release) // a second signal ends the process at once
	if *healthcheck {
		if err := proxy.Healthcheck(ctx, *file); err != nil {
			return fail(exitError, err)
		}
		return exitFine
	}
	// Before anything that takes time: a SIGHUP that nobody listens for ends the
	// process, and one that comes while it starts is obeyed when it serves.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	cfg, err := configuration(*file, *demo)
	if err != nil {
		return fail(exitUsage, err)
	}
	cfg.NewSet = *newSet

	switch {
	case *reload:
		report, err := proxy.AskReload(ctx, cfg, *moveKeys)
		if err != nil {
			return fail(exitError, err)
		}
		fmt.Println(report)
		return exitFine
	case *check:
		if !inspect.Check(ctx, cfg, *all, os.Stdout) {
			return exitError
		}
		return exitFine
	}

	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	log, level := proxy.NewLogger(cfg, os.Stderr)
	p, err := proxy.New(cfg, log, level, registry)
	switch {
	case errors.Is(err, inspect.ErrSetExists):
		return fail(exitUsage, err)
	case err != nil:
		return fail(exitError, err)
	}
	if cfg.Log.Format == "text" {
		fmt.Print(p.Banner())
	}
	if err := serve(ctx, p, hangups); err != nil {
		return fail(exitError, err)
	}
	return exitFine
}

func configuration(file string, demo bool) (*config.Config, error) {
	if demo {
		return config.Demo(), nil
	}
	return config.Load(file)
}

// serve serves until ctx ends, and reloads the configuration at each hangup. It
// does not wait for a reload: one may hang with the file system.
func serve(ctx context.Context, p *proxy.Proxy, hangups <-chan os.Signal) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for {
			select {
			case <-hangups:
				_, _ = p.Reload(ctx, false) // it has told the log and the metrics
			case <-ctx.Done():
				return
			}
		}
	}()
	return p.Serve(ctx)
}

// fail prints an error, each of its lines as one of ours.
func fail(code int, err error) int {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintln(os.Stderr, "redlock-proxy:", line)
	}
	return code
}

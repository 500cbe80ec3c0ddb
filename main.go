// Command redlock-proxy speaks the Redis protocol to existing clients. It turns their
// locks into Redlock over several independent masters, and forwards every other command
// to their own Redis.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
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
	exitError = 1 // the proxy failed while running, or -check, -healthcheck or -reload did
	exitUsage = 2 // the flags or the configuration are wrong
)

const usage = `Usage: redlock-proxy [flags]

  redlock-proxy -demo             try it out: nothing is needed, and nothing is kept
  redlock-proxy -check            ask your servers whether locks are safe on them
  redlock-proxy -new              the first start on new masters
  redlock-proxy -learn            find out which of your keys are locks
  redlock-proxy                   every other start; reads config.yaml here
  redlock-proxy -reload           apply a changed file to the running proxy

`

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	flags := flag.NewFlagSet("redlock-proxy", flag.ContinueOnError)
	file := flags.String("config", "", "read the configuration from `FILE` (default: config.yaml here)")
	try := flags.Bool("demo", false, "try the proxy out without a configuration file: on redis-server processes that it starts, or on embedded servers if redis-server is not installed; they forget all locks when the process ends")
	admin := flags.String("admin", "", "use this admin `ADDRESS` instead of the file's, for one of several processes with the same file; -check, -reload and -healthcheck ask the process there")
	newSet := flags.Bool("new", false, "start masters that hold no locks yet: a new set of them votes at once, not after restart_delay. For the first start only; refused if the masters have been a set for an hour")
	learn := flags.Bool("learn", false, "find out which keys are locks: as if the file said locks: learn, until a reload. No key is a lock, the upstream gets everything, no masters are needed, and REDLOCK UNRULED and the page show the rules to write")
	check := flags.Bool("check", false, "show the settings that are not default, ask every server what it is, list every hazard, and exit 0 or 1. Nothing is changed. Use it before a reload, too; it does not see keys that changed lock rules move, -reload does")
	all := flags.Bool("all", false, "with -check: show every setting")
	asJSON := flags.Bool("json", false, "with -check: write the report as JSON")
	healthcheck := flags.Bool("healthcheck", false, "ask the running proxy whether it is alive, and exit 0 or 1. Only the admin address is read from the file")
	reload := flags.Bool("reload", false, "have the running proxy read its file again, as SIGHUP does, print the result, and exit 0 or 1")
	moveKeys := flags.Bool("move-keys", false, "with -reload: allow changed lock rules to move keys to or from the lock masters. Commands on these keys get TRYAGAIN until the old locks have ended. Without -move-keys such a reload is refused; the error names the keys and the time")
	version := flags.Bool("version", false, "print the version")
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return exitFine
	case err != nil:
		return exitUsage
	case flags.NArg() > 0:
		return fail(exitUsage, fmt.Errorf("unexpected argument %q; -help lists the flags", flags.Arg(0)))
	case *try && (*file != "" || *admin != ""):
		return fail(exitUsage, errors.New("-demo reads no configuration; use either -demo, or -config and -admin"))
	case config.CheckListen(*admin, false) != nil:
		return fail(exitUsage, fmt.Errorf("-admin: %w", config.CheckListen(*admin, false)))
	case *moveKeys && !*reload:
		return fail(exitUsage, errors.New("-move-keys needs -reload"))
	case (*all || *asJSON) && !*check:
		return fail(exitUsage, errors.New("-all and -json need -check"))
	case *check && *reload, *check && *healthcheck, *reload && *healthcheck:
		return fail(exitUsage, errors.New("-check, -reload and -healthcheck exclude each other; run one after the other"))
	case *learn && (*try || *reload || *healthcheck):
		return fail(exitUsage, errors.New("-learn is for the start of a proxy that has a configuration file, and for -check"))
	case *newSet && (*reload || *healthcheck):
		return fail(exitUsage, errors.New("-new is for the first start of a proxy; -reload and -healthcheck ask one that runs"))
	case *version:
		fmt.Println("redlock-proxy", proxy.Version())
		return exitFine
	}
	ctx, release := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer release()
	context.AfterFunc(ctx, release) // a second signal ends the process at once
	if *healthcheck {
		if err := proxy.Healthcheck(ctx, *file, *admin); err != nil {
			return fail(exitError, err)
		}
		return exitFine
	}
	// This comes before anything slow, because a SIGHUP that nobody listens for ends the
	// process. A SIGHUP that arrives during the start causes a reload once the proxy serves.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	cfg := config.Demo()
	if !*try {
		var err error
		if cfg, err = config.Load(*file, config.Flags{Learn: *learn, Admin: *admin}); err != nil {
			return fail(exitUsage, err)
		}
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
		return printReport(proxy.Check(ctx, cfg, *all), *asJSON)
	}
	if *try {
		end, err := prepareDemo(ctx, cfg)
		if err != nil {
			return fail(exitError, err)
		}
		defer end()
	}

	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	switch err := start(ctx, cfg, registry, hangups); {
	case errors.Is(err, inspect.ErrSetExists):
		return fail(exitUsage, err)
	case err != nil:
		return fail(exitError, err)
	}
	return exitFine
}

// start makes the proxy and serves until ctx ends. The log is written when it returns.
func start(ctx context.Context, cfg *config.Config, registry *prometheus.Registry, hangups <-chan os.Signal) error {
	signal.Ignore(syscall.SIGPIPE) // else the proxy ends at its next log line when the reader of its log has ended
	var log *slog.Logger
	lines := newLogQueue(os.Stderr, func(dropped int) {
		log.Warn("log lines were dropped, because nobody read standard error; have it read, or raise log.level", "lines", dropped)
	})
	defer lines.Close()
	log, level := config.NewLogger(cfg, lines)
	p, err := proxy.New(cfg, log, level, registry)
	if err != nil {
		return err
	}
	if cfg.Log.Format == "text" {
		fmt.Print(p.Banner())
	}
	tellReady()
	return serve(ctx, p, hangups)
}

// tellReady tells systemd that clients can connect (Type=notify), so that systemctl returns then.
func tellReady() {
	socket, err := net.Dial("unixgram", os.Getenv("NOTIFY_SOCKET"))
	if err != nil {
		return // most often nobody wants to know
	}
	defer socket.Close()
	_, _ = socket.Write([]byte("READY=1"))
}

// printReport prints the report of -check and returns the exit code.
func printReport(r inspect.Report, asJSON bool) int {
	if !asJSON {
		r.WriteText(os.Stdout)
	} else if err := r.WriteJSON(os.Stdout); err != nil {
		return fail(exitError, err)
	}
	if !r.Fine {
		return exitError
	}
	return exitFine
}

// serve serves until ctx ends, and reloads the configuration at each hangup. At the end it
// does not wait for a running reload, which may hang in the file system.
func serve(ctx context.Context, p *proxy.Proxy, hangups <-chan os.Signal) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for {
			select {
			case <-hangups:
				_, _ = p.Reload(ctx, false) // Reload itself logs and counts the result
			case <-ctx.Done():
				return
			}
		}
	}()
	return p.Serve(ctx)
}

// fail prints an error, with the program's name before each line, and returns code.
func fail(code int, err error) int {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintln(os.Stderr, "redlock-proxy:", line)
	}
	return code
}

package proxy

import (
	"fmt"
	"net"
	"strings"
	"text/tabwriter"
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/redlock"
)

// banner returns a text for a person: what this process serves, and commands to try. listen
// has the real addresses for clients. newSet is the time when the masters of a new set can
// grant locks, zero if the set is not new.
func banner(cfg *config.Config, listen, admin string, newSet time.Time) string {
	var b strings.Builder
	line := func(format string, values ...any) { fmt.Fprintf(&b, format+"\n", values...) }
	line("redlock-proxy %s", Version())
	masters := config.Plural(cfg.Masters.Count(), "master")
	switch {
	case cfg.Learns():
		line("%s", config.LearningNotice)
	case cfg.Upstream.Kind == config.UpstreamNone:
		line("Speaks Redis. Locks become Redlock over %s, every other command is refused, because there is no upstream.", masters)
	default:
		line("Speaks Redis. Locks become Redlock over %s, every other command goes to the upstream.", masters)
	}
	line("")
	line("  configuration  %s", cfg.Source)
	line("  listening on   %s", listen)
	if admin != "" {
		line("  page           http://%s/  (also /status.json /locks.json /events /metrics /healthz /readyz)", reachable(admin))
	}
	line("  lock keys      %s", config.DescribeRules(cfg.Locks))
	line("  masters        %s (quorum %d)", cfg.Masters, cfg.Masters.Quorum())
	line("  upstream       %s", cfg.Upstream)
	line("")
	switch {
	case len(cfg.DemoServers) > 0:
		line("DEMO: these servers are real processes, for trying the proxy out. They end with it.")
		for _, server := range cfg.DemoServers {
			line("  %-13s  %s  process %d", server.Name, server.Address, server.PID)
		}
		line("")
	case len(cfg.EmbeddedServers()) > 0:
		line("DEMO: the embedded servers run inside this process, for trying the proxy out. They know the")
		line("common commands only, and forget everything when it ends. For real locks, write your")
		line("servers into config.yaml and run -check.")
		if cfg.Source == config.DemoSource {
			line("Where redis-server is installed, -demo starts real servers instead.")
		}
		line("")
	}
	if !newSet.IsZero() {
		line("%s", redlock.NewSetNotice(newSet))
		line("")
	}
	if cfg.Learns() {
		return b.String()
	}
	client, key := clientCommand(cfg, listen), cfg.Locks[0].Example()
	if key == "" {
		return b.String()
	}
	line("Try it:")
	table := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	try := func(command, meaning string) { fmt.Fprintf(table, "  %s %s\t%s\n", client, command, meaning) }
	try("SET "+key+" me NX PX 30000", "takes a lock for 30 s")
	try("SET "+key+" you NX PX 30000", "(nil): it is held")
	try("DEL "+key, "gives it back")
	if cfg.Upstream.Kind != config.UpstreamNone {
		try("SET greeting hello", "is not a lock: goes to the upstream")
	}
	table.Flush()
	if len(cfg.DemoServers) > 0 {
		line("")
		line("Take the lock again, kill a master, and look at the page. The lock holds.")
		line("  kill -9 %d", cfg.DemoServers[0].PID)
	}
	return b.String()
}

// reachable returns an address by which this machine reaches a listener.
func reachable(address string) string {
	if host, port, err := net.SplitHostPort(address); err == nil && config.EveryAddress(host) {
		return net.JoinHostPort("localhost", port)
	}
	return address
}

// clientCommand returns the redis-cli command that reaches the proxy from this machine.
func clientCommand(cfg *config.Config, listen string) string {
	command := "redis-cli"
	listen, _, _ = strings.Cut(listen, ", ") // the plain address comes first
	if overTLS, encrypted := strings.CutSuffix(listen, endpoint.TLSMark); encrypted {
		listen, command = overTLS, command+" --tls"
	}
	if path, ok := strings.CutPrefix(listen, config.UnixPrefix); ok {
		command += " -s " + path
	} else if host, port, err := net.SplitHostPort(listen); err == nil {
		if !config.EveryAddress(host) && host != "127.0.0.1" && host != "localhost" {
			command += " -h " + host
		}
		command += " -p " + port
	}
	if cfg.Auth.Password != "" {
		command += " -a PASSWORD"
	}
	return command
}

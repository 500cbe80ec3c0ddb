package proxy

import (
	"fmt"
	"net"
	"runtime/debug"
	"strings"
)

// Version is the module's version and the commit it was built from, as far as
// the build recorded them.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return describeBuild(info)
}

func describeBuild(info *debug.BuildInfo) string {
	settings := map[string]string{}
	for _, setting := range info.Settings {
		settings[setting.Key] = setting.Value
	}
	version := info.Main.Version
	if version == "" {
		version = "(devel)"
	}
	details := []string{info.GoVersion}
	if commit := settings["vcs.revision"]; commit != "" {
		commit = "commit " + commit[:min(len(commit), 12)]
		if settings["vcs.modified"] == "true" {
			commit += " with changes"
		}
		details = append([]string{commit}, details...)
	}
	return version + " (" + strings.Join(details, ", ") + ")"
}

// banner says in plain words what runs here and what to type next. listen is
// the address it really listens on.
func banner(cfg *Config, listen, admin string) string {
	var b strings.Builder
	line := func(format string, values ...any) { fmt.Fprintf(&b, format+"\n", values...) }
	n := cfg.Masters.count()
	line("redlock-proxy %s", Version())
	line("Speaks Redis. Locks become Redlock over %s, every other command goes to the upstream.", plural(n, "independent master"))
	line("")
	line("  configuration  %s", cfg.Source)
	line("  listening on   %s", listen)
	if admin != "" {
		line("  admin          http://%s  /metrics /healthz /readyz", admin)
	}
	line("  lock keys      %s", describeRules(cfg.Locks))
	line("  masters        %s (quorum %d)", cfg.Masters, n/2+1)
	line("  upstream       %s", cfg.Upstream)
	line("")
	if cfg.Masters.Embedded || cfg.Upstream.Kind == UpstreamEmbedded {
		line("The embedded servers are toys inside this process, for trying the proxy out: they know")
		line("the common commands only and forget everything when it ends. For real locks write your")
		line("servers into config.yaml and test it with -check.")
		line("")
	}
	client, key := clientCommand(cfg, listen), exampleKey(cfg.Locks)
	if key == "" {
		return b.String()
	}
	line("Try it:")
	line("  %s SET %s me NX PX 30000     takes a lock for 30 s", client, key)
	line("  %s SET %s you NX PX 30000    (nil): it is held", client, key)
	line("  %s DEL %s                    gives it back", client, key)
	if cfg.Upstream.Kind != UpstreamNone {
		line("  %s SET greeting hello             is no lock: goes to the upstream", client)
	}
	return b.String()
}

func describeRules(rules lockRules) string {
	texts := make([]string, len(rules))
	for i, rule := range rules {
		texts[i] = describeRule(rule)
	}
	return strings.Join(texts, "; ")
}

// exampleKey is a key that the first rule matches, if one is plain to see.
func exampleKey(rules lockRules) string {
	rule := rules[0]
	if rule.db > 0 || strings.Count(rule.match, "*") != 1 || strings.ContainsAny(rule.match, "?[\\ '\"") {
		return ""
	}
	return strings.Replace(rule.match, "*", "demo", 1)
}

func clientCommand(cfg *Config, listen string) string {
	command := "redis-cli"
	if path, ok := strings.CutPrefix(listen, unixPrefix); ok {
		command += " -s " + path
	} else if host, port, err := net.SplitHostPort(listen); err == nil {
		if !everyAddress(host) && host != "127.0.0.1" && host != "localhost" {
			command += " -h " + host
		}
		command += " -p " + port
	}
	if cfg.Auth.Password != "" {
		command += " -a PASSWORD"
	}
	return command
}

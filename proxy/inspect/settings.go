package inspect

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"redlock-proxy/proxy/config"
)

// A setting is one key of the file with its value as text.
type setting struct{ name, value string }

// settingList has settings in the order of the file.
type settingList []setting

func (l settingList) write(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer table.Flush()
	for _, s := range l {
		fmt.Fprintf(table, "%s\t%s\n", s.name, s.value)
	}
}

// MarshalJSON makes one object with a member for each setting.
func (l settingList) MarshalJSON() ([]byte, error) {
	values := map[string]string{}
	for _, s := range l {
		values[s.name] = s.value
	}
	return json.Marshal(values)
}

// changedSettings returns the settings that a file must have: those without a default,
// and those with another value.
func changedSettings(cfg *config.Config) settingList {
	defaults := settingsOf(config.Demo())
	return slices.DeleteFunc(settingsOf(cfg), func(s setting) bool {
		return s.name != "upstream" && s.name != "masters" && slices.Contains(defaults, s)
	})
}

func settingsOf(cfg *config.Config) settingList {
	var list settingList
	row := func(name string, value any) { list = append(list, setting{name, fmt.Sprint(value)}) }
	row("listen", orDash(cfg.Listen))
	if strings.HasPrefix(cfg.Listen, config.UnixPrefix) {
		row("unix_permissions", fmt.Sprintf("%#o", cfg.UnixPermissions))
	}
	row("reuse_port", config.YesNo(cfg.ReusePort))
	row("tls.listen", orDash(cfg.TLS.Listen))
	if cfg.TLS.Listen != "" {
		row("tls", cfg.TLS.Describe())
	}
	row("admin", orDash(cfg.Admin))
	row("admin_hosts", orDash(strings.Join(cfg.AdminHosts, ", ")))
	row("upstream", cfg.Upstream)
	row("masters", fmt.Sprintf("%s (quorum %d)", cfg.Masters, cfg.Masters.Quorum()))
	row("upstream_connections", cfg.UpstreamConnections)
	if cfg.Learns() {
		row("locks", config.DescribeRules(cfg.Locks))
	}
	for i, rule := range cfg.Locks {
		row(fmt.Sprintf("locks[%d]", i), config.DescribeRule(rule))
	}
	row("ignore", config.DescribeGlobs(cfg.Ignore))
	row("master_timeout", config.ShortDuration(cfg.MasterTimeout))
	row("retry", fmt.Sprintf("%d times, each after up to %s", cfg.Retry.Count, config.ShortDuration(cfg.Retry.Delay)))
	row("clock_drift", cfg.ClockDrift)
	row("restart_delay", config.ShortDuration(cfg.RestartDelay))
	row("max_quarantine", config.ShortDuration(cfg.MaxQuarantine))
	row("heal", cfg.Heal)
	writeAuth(row, cfg)
	for _, limit := range cfg.Limits.Table() {
		row("limits."+string(limit.Name), limit.Text())
	}
	row("log", cfg.Log.Level+", "+cfg.Log.Format)
	return list
}

func writeAuth(row func(key string, value any), cfg *config.Config) {
	auth := cfg.Auth
	if auth.Upstream {
		row("auth", "upstream")
		row("auth_cache", config.ShortDuration(cfg.AuthCache))
		return
	}
	row("auth.password", auth.Password)
	row("auth.may", auth.May)
	row("auth.users", orDash(config.DescribeUsers(auth.Users)))
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

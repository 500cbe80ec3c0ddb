package proxy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/unruled"
)

// A readiness says whether locks can be decided now, and has a text for people.
type readiness struct {
	ready bool
	text  string // one or more lines
}

// masters is the state of the lock masters now.
func (p *Proxy) masters() events.State { return p.journal.Masters(p.locker.Status()) }

func (p *Proxy) readiness() readiness {
	state := p.masters()
	ready, lines := state.Ready() || p.current.Load().Learns(), state.Lines()
	if p.draining.Load() {
		ready, lines = false, []string{"draining: the proxy is ending and takes no new clients; connect to another one"}
	}
	begin := map[bool]string{true: "ready: ", false: "not ready: "}[ready]
	return readiness{ready, begin + strings.Join(append(lines, p.notes()...), "\n")}
}

// notes returns lines for operators that do not depend on readiness.
func (p *Proxy) notes() []string {
	cfg := p.current.Load().Config
	lines := slices.Concat(cfg.EmbeddedServers(), p.missingUpstream(), p.masters().Changes(), p.movingKeys())
	if cfg.Learns() {
		lines = append(lines, config.LearningNotice)
		if p.unruled.Unread() {
			lines = append(lines, unruled.UnreadNotice)
		}
	}
	return lines
}

// missingUpstream says that the upstream cannot be used, if that is so. Locks go on without it.
func (p *Proxy) missingUpstream() []string {
	up, _ := p.monitor.Upstream()
	if up.Problem == "" {
		return nil
	}
	return []string{fmt.Sprintf("the upstream (%s) cannot be used since %s, so clients hear NOUPSTREAM, but for locks (deploy/INCIDENTS.md#noupstream): %s",
		up.Name, config.Timestamp(up.Since), events.Printable(up.Problem))}
}

// appendInfo appends the fields of INFO's section Redlock.
func (p *Proxy) appendInfo(dst []byte) []byte {
	settings, state := p.current.Load(), p.masters()
	field := func(name string, value any) { dst = fmt.Appendf(dst, "redlock_%s:%v\r\n", name, value) }
	flag := func(name string, set bool) { field(name, map[bool]int{true: 1}[set]) }
	field("proxy_version", Version())
	field("masters", len(state.Masters))
	field("masters_voting", state.Voting())
	field("quorum", state.Needed)
	flag("ready", p.readiness().ready)
	flag("demo", len(settings.Config.EmbeddedServers()) > 0)
	field("set", state.Set)
	field("epoch", state.Epoch)
	field("lock_rules", len(settings.Router.Rules))
	for i, moving := range settings.Router.Moving(time.Now()) {
		field(fmt.Sprintf("moving_rule%d", i+1), "until="+config.Timestamp(moving.Until)+",rule="+events.Printable(config.DescribeCoverage(moving.Rule)))
	}
	field("locks_without_ttl", p.locks.TakenWithoutTTL())
	for i, master := range state.Masters {
		field(fmt.Sprintf("master%d", i+1), master.Info())
	}
	return dst
}

package proxy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/unruled"
	"redlock-proxy/redlock"
)

// A readiness says whether locks can be decided now, and has a text for people.
type readiness struct {
	ready bool
	text  string // one or more lines
}

func (p *Proxy) readiness() readiness {
	now := judgeReadiness(p.draining.Load(), p.locker.Status())
	if p.current.Load().Config.Learns() && !p.draining.Load() {
		now.ready = true // without the masters
	}
	now.text = strings.Join(append([]string{now.text}, p.notes()...), "\n")
	return now
}

// notes returns lines for operators that do not depend on readiness.
func (p *Proxy) notes() []string {
	cfg := p.current.Load().Config
	lines := slices.Concat(cfg.EmbeddedServers(), p.missingUpstream(), resizing(p.locker.Status()), p.movingKeys())
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
	return []string{fmt.Sprintf("the upstream (%s) cannot be used since %s, so clients hear NOUPSTREAM, but for locks: %s",
		up.Name, config.Timestamp(up.Since), strings.Map(printable, up.Problem))}
}

// resizing describes how the number of masters changes, and the servers that do not count.
func resizing(status redlock.Status) (lines []string) {
	switch change := status.Change; {
	case change.Wanted != 0 && change.Wanted != len(status.Masters):
		lines = append(lines, strings.TrimSuffix(fmt.Sprintf("the number of lock masters changes from %d to %d, one at a time: %s", len(status.Masters), change.Wanted, change.Waits), ": "))
	case change.Waits != "":
		lines = append(lines, "the number of lock masters is being changed: "+change.Waits)
	}
	for _, other := range status.Others {
		lines = append(lines, "not counted: "+describeMaster(other))
	}
	return lines
}

// judgeReadiness writes a line about the quorum, and one for each master that does not
// vote. It names these masters also if the others suffice: one more failure may then end
// the quorum.
func judgeReadiness(draining bool, status redlock.Status) readiness {
	if draining {
		return readiness{false, "draining: the proxy is ending and takes no new clients"}
	}
	count := fmt.Sprintf("%d of %d lock masters vote, %d needed", voting(status), len(status.Masters), status.Needed)
	lines := []string{count}
	if status.Ready() {
		lines[0] = "ready: " + count
	} else if status.Reason != "" {
		lines = append(lines, status.Reason)
	}
	if !status.NewUntil.IsZero() {
		lines = append(lines, redlock.NewSetNotice(status.NewUntil))
	}
	return readiness{status.Ready(), strings.Join(append(lines, missingMasters(status)...), "\n")}
}

// missingMasters describes the masters that do not vote.
func missingMasters(status redlock.Status) []string {
	var missing []string
	for _, master := range status.Masters {
		if master.State != redlock.Certified {
			missing = append(missing, describeMaster(master))
		}
	}
	return missing
}

func voting(status redlock.Status) int { return countMasters(status, redlock.Certified) }

// countMasters returns the number of masters with one of these states.
func countMasters(status redlock.Status, states ...redlock.MasterState) (n int) {
	for _, master := range status.Masters {
		if slices.Contains(states, master.State) {
			n++
		}
	}
	return n
}

// describeMaster writes a line like: 10.0.0.1:6379 is quarantined until
// 2026-11-21T05:10:00Z: it may have forgotten locks.
func describeMaster(master redlock.MasterStatus) string {
	text := master.Name + " is " + master.State.String()
	if !master.Until.IsZero() {
		text += " until " + config.Timestamp(master.Until)
	}
	if master.Reason != "" {
		text += ": " + master.Reason
	}
	return text
}

// appendInfo appends the fields of INFO's section Redlock.
func (p *Proxy) appendInfo(dst []byte) []byte {
	settings, status := p.current.Load(), p.locker.Status()
	field := func(name string, value any) { dst = fmt.Appendf(dst, "redlock_%s:%v\r\n", name, value) }
	flag := func(name string, set bool) { field(name, map[bool]int{true: 1}[set]) }
	field("proxy_version", Version())
	field("masters", len(status.Masters))
	field("masters_voting", voting(status))
	field("quorum", status.Needed)
	flag("ready", p.readiness().ready)
	flag("demo", len(settings.Config.EmbeddedServers()) > 0)
	field("set", status.Set)
	field("epoch", status.Epoch)
	field("lock_rules", len(settings.Router.Rules))
	for i, moving := range settings.Router.Moving(time.Now()) {
		field(fmt.Sprintf("moving_rule%d", i+1), "until="+config.Timestamp(moving.Until)+",rule="+strings.Map(printable, config.DescribeCoverage(moving.Rule)))
	}
	field("locks_without_ttl", p.locks.TakenWithoutTTL())
	for i, master := range status.Masters {
		field(fmt.Sprintf("master%d", i+1), infoOfMaster(master))
	}
	return dst
}

// infoOfMaster writes the reason last, because it may contain commas.
func infoOfMaster(master redlock.MasterStatus) string {
	text := "name=" + master.Name + ",state=" + master.State.String()
	if !master.Until.IsZero() {
		text += ",until=" + config.Timestamp(master.Until)
	}
	if master.Reason != "" {
		text += ",reason=" + strings.Map(printable, master.Reason)
	}
	return text
}

// printable replaces control characters, so that a server's text cannot break a line of INFO.
func printable(r rune) rune {
	if r < ' ' {
		return ' '
	}
	return r
}

package inspect

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/proxy/route"
)

// A Hazard is one thing about the servers that endangers locks.
type Hazard struct {
	level hazardLevel
	// kind is a word of a closed set, server the name of the server that it is
	// about, if it is about one, and detail what is missing there, if anything
	// is: the labels of the metric.
	kind, server, detail string
	text                 string
}

type hazardLevel uint8

const (
	hazardWarning hazardLevel = iota // it works, less safely than it could
	hazardAbsent                     // a server is away or cannot vote: start anyway, that may change
	hazardRefused                    // with these servers the locks are no locks; the proxy does not start
)

// hazardList collects hazards.
type hazardList []Hazard

func (l *hazardList) add(level hazardLevel, kind, server, format string, values ...any) {
	*l = append(*l, Hazard{level: level, kind: kind, server: server, text: fmt.Sprintf(format, values...)})
}

// Hazards judges the configuration and what the servers said. It is the same
// judgement at the start, at a reload and for -check.
func Hazards(cfg *config.Config, upstream *Facts, masters []Facts) []Hazard {
	var found hazardList
	n := cfg.Masters.Count()
	quorum := cfg.Masters.Quorum()
	for _, text := range cfg.Toys() {
		found.add(hazardWarning, "embedded", "", "%s", text)
	}
	switch {
	case cfg.Masters.Embedded:
	case n < 3:
		found.add(hazardWarning, "few", "", "%s: no master may fail; use 3 or 5", config.Plural(n, "master"))
	case n%2 == 0:
		found.add(hazardWarning, "even", "", "%d masters is an even number: as many may fail as with %d, and one more must answer; use %d or %d", n, n-1, n-1, n+1)
	}
	for i, rule := range cfg.Locks {
		if rule.DefaultTTL > cfg.MaxQuarantine {
			found.add(hazardWarning, "ttl", "", "locks[%d] (%s): its default_ttl is longer than max_quarantine (%s), so a master that forgets such a lock votes again before the lock has ended",
				i, config.DescribeRule(rule), config.ShortDuration(cfg.MaxQuarantine))
		}
	}
	found = append(found, databaseHazards(cfg, upstream, masters)...)
	if upstream != nil {
		found = append(found, upstream.asUpstream(cfg, masters)...)
		found = append(found, upstream.sentinelHazards()...)
	}
	found = append(found, certificateHazards(cfg, time.Now())...)
	found = append(found, newSetHazards(cfg, masters, time.Now())...)
	answering := 0
	for i, master := range masters {
		found = append(found, master.sentinelHazards()...)
		if master.Err != nil {
			found.add(hazardAbsent, "away", master.Name, "%s (%s) cannot be used: %v", master.title, master.Name, master.Err)
			continue
		}
		answering++
		for _, earlier := range masters[:i] {
			if master.runID != "" && master.runID == earlier.runID {
				found.add(hazardRefused, "duplicate", master.Name, "%s (%s) and %s (%s) are one server (run_id %s); one server has one vote",
					earlier.title, earlier.Name, master.title, master.Name, shortRunID(master.runID))
			}
		}
		found = append(found, master.asMaster(upstream)...)
	}
	if len(masters) > 0 && answering < quorum {
		found.add(hazardAbsent, "away", "", "%d of %d masters can be used, %d are needed to decide a lock", answering, n, quorum)
	}
	return found
}

// Refused is nil, or why the proxy does not start with these servers and a
// reload does not take them. It wraps ErrSetExists where -new is why.
func Refused(hazards []Hazard) error {
	var refused []error
	for _, h := range hazards {
		switch {
		case h.level != hazardRefused:
		case h.kind == kindNewSet:
			refused = append(refused, fmt.Errorf("%w: %s", ErrSetExists, h.text))
		default:
			refused = append(refused, errors.New(h.text))
		}
	}
	return errors.Join(refused...)
}

// openHazards are addresses at which a client of another machine needs neither a
// password nor a certificate. Where the network keeps strangers away that is as
// it should be, so only -check says it and no alert does.
func openHazards(cfg *config.Config) []Hazard {
	var found hazardList
	open := func(key, address string) {
		if address != "" && beyondLoopback(address) {
			found.add(hazardWarning, "open", "", "%s (%s) lets everybody in who reaches it, without a password: set auth.password, or see to it that the network keeps strangers away", key, address)
		}
	}
	if cfg.Auth.Password != "" || len(cfg.Auth.Users) > 0 || cfg.Auth.Upstream {
		return nil
	}
	open("listen", cfg.Listen)
	if cfg.TLS.AuthClients != "yes" {
		open("tls.listen", cfg.TLS.Listen)
	}
	return found
}

// beyondLoopback tells whether other machines may reach an address to listen on.
func beyondLoopback(address string) bool {
	if strings.HasPrefix(address, config.UnixPrefix) {
		return false
	}
	host, _, _ := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return host != "localhost" && (ip == nil || !ip.IsLoopback())
}

// databaseHazards are rules for databases that no client can select, or that
// masters do not have. Of a server that does not tell its number nothing is said.
func databaseHazards(cfg *config.Config, upstream *Facts, masters []Facts) []Hazard {
	var found hazardList
	selectable, whose := config.DefaultDatabases, "this proxy has"
	if upstream != nil {
		selectable, whose = upstream.databases, "the upstream has"
	}
	for i, rule := range cfg.Locks {
		if rule.DB == route.AnyDB {
			continue
		}
		title := fmt.Sprintf("locks[%d] (%s)", i, config.DescribeRule(rule))
		if selectable > 0 && rule.DB >= selectable {
			found.add(hazardWarning, "databases", "", "%s: no client can select that database, for %s %d (0 to %d), so the rule is never used",
				title, whose, selectable, selectable-1)
			continue
		}
		for _, f := range masters {
			if f.databases > 0 && rule.DB >= f.databases {
				found.add(hazardWarning, "databases", f.Name, "%s: %s (%s) has %s and cannot vote on these locks; raise databases there",
					title, f.title, f.Name, config.Plural(f.databases, "database"))
			}
		}
	}
	return found
}

// certificateHazards are files for TLS that were renewed badly or not at all.
func certificateHazards(cfg *config.Config, now time.Time) []Hazard {
	var found hazardList
	judge := func(files *endpoint.TLS, name, side string) {
		if files == nil {
			return
		}
		if err := files.Problem(now); err != nil {
			found.add(hazardWarning, "certificate", name, "TLS %s: %v", side, err)
		}
	}
	judge(cfg.TLS.Files, "", "for clients")
	judge(cfg.Upstream.Server.TLS, cfg.Upstream.Server.Name, "to the upstream ("+cfg.Upstream.Server.Name+")")
	for i, master := range cfg.Masters.Servers {
		judge(master.TLS, master.Name, fmt.Sprintf("to master %d (%s)", i+1, master.Name))
	}
	return found
}

// asUpstream judges the upstream. That it is a master too is a warning and no
// refusal: it costs independence, but what a client's FLUSHALL or FLUSHDB
// erases there the marker shows, and the master is quarantined as if it had
// restarted. What no marker shows (SWAPDB, scripts at the upstream that touch
// keys they did not name) is one vote of N, and the warning names it.
func (f Facts) asUpstream(cfg *config.Config, masters []Facts) []Hazard {
	var found hazardList
	if f.Err != nil {
		found.add(hazardAbsent, "away", f.Name, "the upstream (%s) cannot be used: %v", f.Name, f.Err)
	}
	if f.cluster {
		found.add(hazardRefused, "cluster", f.Name, "the upstream (%s) runs in cluster mode: it refuses keys of other slots, and clients that know clusters would go round the proxy to its nodes; use an upstream without cluster mode", f.Name)
	}
	for i, master := range cfg.Masters.Servers {
		sameRun := f.runID != "" && f.runID == masters[i].runID
		if sameRun || master.Same(cfg.Upstream.Server) {
			found.add(hazardWarning, "shared", f.Name, "the upstream (%s) is also master %d: both fail together, FLUSHALL on it costs that master its vote for a quarantine, and SWAPDB or a script that touches keys it did not name can erase its locks unseen", f.Name, i+1)
		}
	}
	return found
}

// asMaster judges one master that answered.
func (f Facts) asMaster(upstream *Facts) []Hazard {
	var found hazardList
	add := func(level hazardLevel, kind, format string, values ...any) {
		found.add(level, kind, f.Name, fmt.Sprintf("%s (%s) ", f.title, f.Name)+format, values...)
	}
	for _, right := range f.missing {
		level, effect := hazardWarning, "some commands on lock keys will fail there"
		if right.vital {
			level, effect = hazardAbsent, "it cannot vote without"
		}
		what := strings.ToUpper(strings.ReplaceAll(right.name, "|", " "))
		if strings.Contains(right.name, " ") {
			what = "commands on " + right.name
		}
		add(level, "rights", "does not allow the proxy's user %s, and %s; grant it (the server says: %s)", what, effect, right.text)
		found[len(found)-1].detail = right.name
	}
	if f.untold != nil {
		add(hazardWarning, "untold", "does not tell what it is: %v", f.untold)
		return found
	}
	if f.role != "master" {
		add(hazardAbsent, "replica", "is a replica, so it does not vote: what it holds can be overwritten by its own master; list independent servers")
	}
	if f.cluster {
		add(hazardRefused, "cluster", "runs in cluster mode: it refuses keys of other slots; list independent servers")
	}
	if f.maxmemory && f.policy != "noeviction" {
		add(hazardAbsent, "eviction", "may evict locks when its memory is full (maxmemory-policy %s), so it does not vote; set noeviction", f.policy)
	}
	if upstream != nil && f.databases > 0 && f.databases < upstream.databases {
		add(hazardWarning, "databases", "has %s, the upstream has %d: locks in a higher database cannot be stored", config.Plural(f.databases, "database"), upstream.databases)
	}
	return found
}

func shortRunID(id string) string { return id[:min(len(id), 8)] }

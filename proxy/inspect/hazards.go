package inspect

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/proxy/route"
)

// A Hazard is one thing about the servers that endangers locks.
type Hazard struct {
	level hazardLevel
	// These are the labels of the metric. kind is a word of a closed set. server is the
	// name of the server in question, or empty. detail is what is missing there, or
	// empty.
	kind, server, detail string
	text                 string
}

type hazardLevel uint8

const (
	hazardWarning hazardLevel = iota // locks work, but less safely than they could
	hazardAbsent                     // a server is unreachable or cannot vote; the proxy starts, since that may change
	hazardRefused                    // these servers cannot hold locks safely; the proxy does not start
)

// hazardList collects hazards.
type hazardList []Hazard

func (l *hazardList) add(level hazardLevel, kind, server, format string, values ...any) {
	*l = append(*l, Hazard{level: level, kind: kind, server: server, text: fmt.Sprintf(format, values...)})
}

// Hazards judges the configuration and the facts. The start, a reload and -check all use
// it.
func Hazards(cfg *config.Config, upstream *Facts, masters []Facts) []Hazard {
	var found hazardList
	n := cfg.Masters.Count()
	quorum := cfg.Masters.Quorum()
	for _, text := range cfg.EmbeddedServers() {
		found.add(hazardWarning, "embedded", "", "%s", text)
	}
	if cfg.Learns() {
		found.add(hazardWarning, "learning", "", "%s", config.LearningNotice)
	}
	switch {
	case cfg.Masters.Embedded:
	case n < 3:
		found.add(hazardWarning, "few", "", "%s: no master may fail; use 3 or 5", config.Plural(n, "master"))
	case n%2 == 0:
		found.add(hazardWarning, "even", "", "%d masters: only %d may fail, as with %d, and a lock needs %d answers instead of %d; use %d or %d",
			n, n-quorum, n-1, quorum, quorum-1, n-1, n+1)
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
			found.add(hazardAbsent, "unreachable", master.Name, "%s (%s) cannot be used: %v", master.title, master.Name, master.Err)
		} else {
			answering++
		}
		for _, earlier := range masters[:i] {
			if master.runID != "" && master.runID == earlier.runID {
				found.add(hazardRefused, "duplicate", master.Name, "%s (%s) and %s (%s) are the same server (run_id %s); one server has one vote",
					earlier.title, earlier.Name, master.title, master.Name, shortRunID(master.runID))
			}
		}
		found = append(found, master.asMaster(upstream)...)
	}
	if len(masters) > 0 && answering < quorum {
		found.add(hazardAbsent, "unreachable", "", "%d of %d masters can be used, %d are needed to decide a lock", answering, n, quorum)
	}
	return found
}

// Refused returns the error with which the proxy refuses to start on these servers, or
// to reload to them. It returns nil if they are acceptable. The error wraps ErrSetExists
// if -new is the reason.
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

// openHazards are listen addresses at which a client from another machine needs neither
// a password nor a certificate, and an admin address that it reaches. That is fine if the network keeps strangers out. So only
// -check reports it, and no metric does.
func openHazards(cfg *config.Config) []Hazard {
	var found hazardList
	open := func(key, address string) {
		if address != "" && beyondLoopback(address) {
			found.add(hazardWarning, "open", "", "%s (%s) accepts everyone who can reach it, without a password: set auth.password, or restrict access in the network", key, address)
		}
	}
	if cfg.Admin != "" && beyondLoopback(cfg.Admin) {
		found.add(hazardWarning, "open", "", "admin (%s) shows the keys of all locks and the clients to everyone who can reach it: let only operators, by the network", cfg.Admin)
	}
	if cfg.Auth.Password != "" || len(cfg.Auth.Users) > 0 || cfg.Auth.Upstream {
		return found
	}
	open("listen", cfg.Listen)
	if cfg.TLS.AuthClients != "yes" {
		open("tls.listen", cfg.TLS.Listen)
	}
	return found
}

// patientClients wait that long for an answer: many clients wait for 2 s by default.
const patientClients = 1500 * time.Millisecond

// slowHazards are settings by which a lock command may take longer than clients wait. They may be
// meant so. So only -check reports it, and no metric does.
func slowHazards(cfg *config.Config) []Hazard {
	var found hazardList
	retries := time.Duration(cfg.Retry.Count)
	if longest := (retries+1)*cfg.MasterTimeout + retries*cfg.Retry.Delay; longest > patientClients {
		found.add(hazardWarning, "slow", "", "a lock command may take %s, by master_timeout (%s), retry.count (%d) and retry.delay (%s), and many clients wait for 2s only: lower them, or give the clients more time",
			config.ShortDuration(longest), config.ShortDuration(cfg.MasterTimeout), cfg.Retry.Count, config.ShortDuration(cfg.Retry.Delay))
	}
	return found
}

// migrateSetting is 1 if the kernel gives clients that a closing listener has not accepted to the
// other listeners on its address.
const migrateSetting = "/proc/sys/net/ipv4/tcp_migrate_req"

// reusePortHazards is a kernel that resets clients when one of several processes ends. Old kernels
// cannot do better. So only -check reports it, and no metric does.
func reusePortHazards(cfg *config.Config, setting string) []Hazard {
	var found hazardList
	if text, _ := os.ReadFile(setting); cfg.ReusePort && strings.TrimSpace(string(text)) != "1" {
		found.add(hazardWarning, "reset", "", "reuse_port: a process that ends resets clients that are just connecting; let the kernel give them to the other processes: sysctl net.ipv4.tcp_migrate_req=1 (Linux 5.14 or later)")
	}
	return found
}

// beyondLoopback tells whether other machines may reach a listen address.
func beyondLoopback(address string) bool {
	if strings.HasPrefix(address, config.UnixPrefix) {
		return false
	}
	host, _, _ := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return host != "localhost" && (ip == nil || !ip.IsLoopback())
}

// databaseHazards are rules for databases that no client can select, or that masters do
// not have. It reports nothing for a server whose number of databases is unknown.
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
			found.add(hazardWarning, "databases", "", "%s: this rule is never used, because %s only the databases 0 to %d", title, whose, selectable-1)
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

// certificateHazards are TLS files that were renewed wrongly or not at all.
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

// asUpstream judges the upstream. If the upstream is a master too, that is a warning and
// no refusal. It costs independence. But if a client's FLUSHALL or FLUSHDB erases locks
// there, it erases the marker too, and the master is quarantined as after a restart. No
// marker shows a SWAPDB, or a script at the upstream that changes undeclared keys. These
// can cost one vote of N, and the warning names them.
func (f Facts) asUpstream(cfg *config.Config, masters []Facts) []Hazard {
	var found hazardList
	if f.Err != nil {
		found.add(hazardAbsent, "unreachable", f.Name, "the upstream (%s) cannot be used: %v", f.Name, f.Err)
	}
	if f.unsaved {
		found.add(hazardWarning, "unsaved", f.Name, "the upstream (%s) cannot write to its disk, so it refuses writes; its log says why", f.Name)
	}
	if f.cluster {
		found.add(hazardRefused, "cluster", f.Name, "the upstream (%s) runs in cluster mode: it refuses keys of other slots, and cluster clients would bypass the proxy; use an upstream without cluster mode", f.Name)
	}
	for i, master := range cfg.Masters.Servers {
		sameRun := f.runID != "" && f.runID == masters[i].runID
		if sameRun || master.Same(cfg.Upstream.Server) {
			found.add(hazardWarning, "shared", f.Name, "the upstream (%s) is also master %d: they fail together; FLUSHALL there puts the master in quarantine; SWAPDB, or a script with undeclared keys, can erase its locks unnoticed", f.Name, i+1)
		}
	}
	return found
}

// asMaster judges what one master said.
func (f Facts) asMaster(upstream *Facts) []Hazard {
	var found hazardList
	add := func(level hazardLevel, kind, format string, values ...any) {
		found.add(level, kind, f.Name, fmt.Sprintf("%s (%s) ", f.title, f.Name)+format, values...)
	}
	for _, right := range f.missing {
		level, effect := hazardWarning, "some commands on lock keys will fail there"
		if right.vital {
			level, effect = hazardAbsent, "it cannot vote"
		}
		what := strings.ToUpper(strings.ReplaceAll(right.name, "|", " "))
		if strings.Contains(right.name, " ") {
			what = "commands on " + right.name
		}
		add(level, "rights", "denies the proxy's user %s, so %s; grant it (the server says: %s)", what, effect, right.text)
		found[len(found)-1].detail = right.name
	}
	if f.untold != nil {
		add(hazardWarning, "untold", "refused INFO, so its role and version are unknown: %v", f.untold)
		return found
	}
	if f.isReplica() {
		add(hazardAbsent, "replica", "is a replica, so it must not vote: its own master can overwrite its data; list independent servers")
	}
	if f.cluster {
		add(hazardRefused, "cluster", "runs in cluster mode: it refuses keys of other slots; list independent servers")
	}
	if f.mayEvict() {
		add(hazardAbsent, "eviction", "may evict locks when its memory is full (maxmemory-policy %s), so it does not vote; set noeviction", f.policy)
	}
	if f.refusal != "" && !f.isReplica() {
		add(hazardAbsent, "refuses", "does not vote: %s", f.refusal)
	}
	if upstream != nil && f.databases > 0 && f.databases < upstream.databases {
		add(hazardWarning, "databases", "has %s, the upstream has %d: locks in a higher database cannot be stored", config.Plural(f.databases, "database"), upstream.databases)
	}
	return found
}

func shortRunID(id string) string { return id[:min(len(id), 8)] }

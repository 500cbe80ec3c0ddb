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
	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/route"
)

// A Hazard is one thing about the servers that endangers locks. Its Kind is a word of a closed set.
type Hazard struct {
	Level         hazardLevel `json:"level"`
	events.Hazard             // the labels of the metric redlock_hazards
	Text          string      `json:"text"`
}

type hazardLevel uint8

const (
	hazardWarning hazardLevel = iota // locks work, but less safely than they could
	hazardAbsent                     // a server is unreachable or cannot vote; the proxy starts, since that may change
	hazardRefused                    // these servers cannot hold locks safely; the proxy does not start
)

func (l hazardLevel) String() string {
	if l == hazardWarning {
		return "warning"
	}
	return "error"
}

// MarshalText implements encoding.TextMarshaler.
func (l hazardLevel) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// hazardList collects hazards.
type hazardList []Hazard

func (l *hazardList) add(level hazardLevel, kind, server, format string, values ...any) {
	*l = append(*l, Hazard{level, events.Hazard{Kind: kind, Server: server}, fmt.Sprintf(format, values...)})
}

// Hazards judges the configuration and the answers. The start, a reload and -check all use it. It asks no server.
func (a Answers) Hazards() []Hazard {
	var found hazardList
	cfg, upstream, masters := a.Config, a.Upstream, a.Masters
	n, quorum := cfg.Masters.Count(), cfg.Masters.Quorum()
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
			found.add(hazardWarning, "ttl", "", "locks[%d] (%s): its default_ttl is longer than max_quarantine (%s), so a master that forgets such a lock votes again before the lock has ended; shorten the one, or raise the other",
				i, config.DescribeRule(rule), config.ShortDuration(cfg.MaxQuarantine))
		}
	}
	found.databases(a)
	if upstream != nil {
		found.upstream(a)
		found.sentinels(*upstream)
	}
	found.certificates(cfg, time.Now())
	found.newSet(a, time.Now())
	answering := 0
	for i, master := range masters {
		found.sentinels(master)
		if master.Err != nil {
			found.add(hazardAbsent, "unreachable", master.Name, "%s cannot be used: %v (deploy/INCIDENTS.md#unreachable)", master.called(), master.Err)
		} else {
			answering++
		}
		for _, earlier := range masters[:i] {
			if master.RunID != "" && master.RunID == earlier.RunID {
				found.add(hazardRefused, "duplicate", master.Name, "%s and %s are the same server (run_id %s); one server has one vote; list another one",
					earlier.called(), master.called(), shortRunID(master.RunID))
			}
		}
		found.master(master, upstream)
	}
	if len(masters) > 0 && answering < quorum {
		found.add(hazardAbsent, "unreachable", "", "%d of %d masters can be used, %d are needed to decide a lock (deploy/INCIDENTS.md#quorumlost)", answering, n, quorum)
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
		case h.Level != hazardRefused:
		case h.Kind == kindNewSet:
			refused = append(refused, fmt.Errorf("%w: %s", ErrSetExists, h.Text))
		default:
			refused = append(refused, errors.New(h.Text))
		}
	}
	return errors.Join(refused...)
}

const (
	// patientClients wait that long for an answer: many clients wait for 2 s by default.
	patientClients = 1500 * time.Millisecond
	// migrateSetting is 1 if the kernel gives clients that a closing listener has not accepted to the
	// other listeners on its address.
	migrateSetting = "/proc/sys/net/ipv4/tcp_migrate_req"
)

// settings are hazards that may be meant so: listen addresses at which a client from another machine needs
// neither a password nor a certificate, and an admin address that it reaches (fine if the network keeps
// strangers out); a lock command that may take longer than clients wait; and an old kernel that resets
// clients when one of several processes ends. So only -check reports them, and no metric does.
func (l *hazardList) settings(cfg *config.Config, migrate string) {
	if beyondLoopback(cfg.Admin) {
		l.add(hazardWarning, "open", "", "admin (%s) shows the keys of all locks and the clients to everyone who can reach it: let only operators, by the network", cfg.Admin)
	}
	open := func(key, address string) {
		if beyondLoopback(address) && cfg.Auth.Password == "" && len(cfg.Auth.Users) == 0 && !cfg.Auth.Upstream {
			l.add(hazardWarning, "open", "", "%s (%s) accepts everyone who can reach it, without a password: set auth.password, or restrict access in the network", key, address)
		}
	}
	open("listen", cfg.Listen)
	if cfg.TLS.AuthClients != "yes" {
		open("tls.listen", cfg.TLS.Listen)
	}
	retries := time.Duration(cfg.Retry.Count)
	if longest := (retries+1)*cfg.MasterTimeout + retries*cfg.Retry.Delay; longest > patientClients {
		l.add(hazardWarning, "slow", "", "a lock command may take %s, by master_timeout (%s), retry.count (%d) and retry.delay (%s), and many clients wait for 2s only: lower them, or give the clients more time",
			config.ShortDuration(longest), config.ShortDuration(cfg.MasterTimeout), cfg.Retry.Count, config.ShortDuration(cfg.Retry.Delay))
	}
	if text, _ := os.ReadFile(migrate); cfg.ReusePort && strings.TrimSpace(string(text)) != "1" {
		l.add(hazardWarning, "reset", "", "reuse_port: a process that ends resets clients that are just connecting; let the kernel give them to the other processes: sysctl net.ipv4.tcp_migrate_req=1 (Linux 5.14 or later)")
	}
}

// beyondLoopback tells whether other machines may reach a listen address, if there is one.
func beyondLoopback(address string) bool {
	if address == "" || strings.HasPrefix(address, config.UnixPrefix) {
		return false
	}
	host, _, _ := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return host != "localhost" && (ip == nil || !ip.IsLoopback())
}

// databases are rules for databases that no client can select, or that masters do
// not have. It reports nothing for a server whose number of databases is unknown.
func (l *hazardList) databases(a Answers) {
	selectable, whose := config.DefaultDatabases, "this proxy has"
	if a.Upstream != nil {
		selectable, whose = a.Upstream.Databases, "the upstream has"
	}
	for i, rule := range a.Config.Locks {
		title := fmt.Sprintf("locks[%d] (%s)", i, config.DescribeRule(rule))
		if rule.DB != route.AnyDB && selectable > 0 && rule.DB >= selectable {
			l.add(hazardWarning, "databases", "", "%s: this rule is never used, because %s only the databases 0 to %d; correct its db", title, whose, selectable-1)
			continue
		}
		for _, f := range a.Masters {
			if f.Databases > 0 && rule.DB != route.AnyDB && rule.DB >= f.Databases {
				l.add(hazardWarning, "databases", f.Name, "%s: %s has %s and cannot vote on these locks; raise databases there",
					title, f.called(), config.Plural(f.Databases, "database"))
			}
		}
	}
}

// certificates are TLS files that were renewed wrongly or not at all.
func (l *hazardList) certificates(cfg *config.Config, now time.Time) {
	judge := func(files *endpoint.TLS, name, side string) {
		if files == nil {
			return
		}
		if err := files.Problem(now); err != nil {
			l.add(hazardWarning, "certificate", name, "TLS %s: %v", side, err)
		}
	}
	judge(cfg.TLS.Files, "", "for clients")
	judge(cfg.Upstream.Server.TLS, cfg.Upstream.Server.Name, "to the upstream ("+cfg.Upstream.Server.Name+")")
	for i, master := range cfg.Masters.Servers {
		judge(master.TLS, master.Name, fmt.Sprintf("to master %d (%s)", i+1, master.Name))
	}
}

// sentinels are things that would prevent a failover. They are warnings, because
// locks need only a reachable master now, and Hazards judges that.
func (l *hazardList) sentinels(f Facts) {
	s := f.sentinels
	if s.Asked > 0 && s.Answered <= s.Asked/2 {
		l.add(hazardWarning, "sentinel", f.Name, "%s: %d of %s answer, and a failover needs a majority of them (%s); start the others", f.called(), s.Answered, config.Plural(s.Asked, "Sentinel"), strings.Join(s.Silent, "; "))
	}
	if len(s.Named) > 1 {
		l.add(hazardWarning, "sentinel", f.Name, "%s: its Sentinels name different masters; the one of the latest configuration is used; give the others SENTINEL REMOVE and MONITOR if they do not agree by themselves", f.called())
	}
	if s.Answered > 0 && s.Replicas == 0 {
		l.add(hazardWarning, "sentinel", f.Name, "%s: its Sentinels know no replica that could be promoted; start one", f.called())
	}
}

// upstream judges the upstream. If the upstream is a master too, that is a warning and
// no refusal. It costs independence. But if a client's FLUSHALL or FLUSHDB erases locks
// there, it erases the marker too, and the master is quarantined as after a restart. No
// marker shows a SWAPDB, or a script at the upstream that changes undeclared keys. These
// can cost one vote of N, and the warning names them.
func (l *hazardList) upstream(a Answers) {
	f := a.Upstream
	if f.Err != nil {
		l.add(hazardAbsent, "unreachable", f.Name, "the %s cannot be used: %v (deploy/INCIDENTS.md#noupstream)", f.called(), f.Err)
	}
	if f.unsaved {
		l.add(hazardWarning, "unsaved", f.Name, "the %s cannot write to its disk, so it refuses writes; its log says why", f.called())
	}
	if f.Cluster {
		l.add(hazardRefused, "cluster", f.Name, "the %s runs in cluster mode: it refuses keys of other slots, and cluster clients would bypass the proxy; use an upstream without cluster mode", f.called())
	}
	for i, master := range a.Config.Masters.Servers {
		sameRun := f.RunID != "" && f.RunID == a.Masters[i].RunID
		if sameRun || master.Same(a.Config.Upstream.Server) {
			l.add(hazardWarning, "shared", f.Name, "the %s is also master %d: they fail together; FLUSHALL there puts the master in quarantine; SWAPDB, or a script with undeclared keys, can erase its locks unnoticed; use a server of its own for each", f.called(), i+1)
		}
	}
}

// master judges what one master said.
func (l *hazardList) master(f Facts, upstream *Facts) {
	add := func(level hazardLevel, kind, format string, values ...any) {
		l.add(level, kind, f.Name, "%s "+format, append([]any{f.called()}, values...)...)
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
		(*l)[len(*l)-1].Detail = right.name
	}
	if f.untold != nil {
		add(hazardWarning, "untold", "refused INFO, so its role and version are unknown; grant it (the server says: %v)", f.untold)
		return
	}
	if f.isReplica() {
		add(hazardAbsent, "replica", "is a replica, so it must not vote: its own master can overwrite its data; list independent servers")
	}
	if f.Cluster {
		add(hazardRefused, "cluster", "runs in cluster mode: it refuses keys of other slots; list independent servers")
	}
	if f.mayEvict() {
		add(hazardAbsent, "eviction", "may evict locks when its memory is full (maxmemory-policy %s), so it does not vote; set noeviction", f.Policy)
	}
	if f.refusal != "" && !f.isReplica() {
		add(hazardAbsent, "refuses", "does not vote: %s", f.refusal)
	}
	if upstream != nil && f.Databases > 0 && f.Databases < upstream.Databases {
		add(hazardWarning, "databases", "has %s, the upstream has %d: locks in a higher database cannot be stored; raise databases there", config.Plural(f.Databases, "database"), upstream.Databases)
	}
}

// called names a server: upstream (10.0.0.9:6379), master 1 (10.0.0.1:6379).
func (f Facts) called() string { return f.Title + " (" + f.Name + ")" }

func shortRunID(id string) string { return id[:min(len(id), 8)] }

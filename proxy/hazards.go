package proxy

import "fmt"

// hazard is one thing about the servers that endangers locks.
type hazard struct {
	level hazardLevel
	text  string
}

type hazardLevel uint8

const (
	hazardWarning hazardLevel = iota // it works, less safely than it could
	hazardAbsent                     // a server is away: start anyway, it may come back
	hazardRefused                    // with these servers the locks are no locks; the proxy does not start
)

// hazardsOf judges what the servers said. It is the same judgement at the
// start and for -check.
func hazardsOf(cfg *Config, upstream *serverFacts, masters []serverFacts) []hazard {
	var found []hazard
	add := func(level hazardLevel, format string, values ...any) {
		found = append(found, hazard{level, fmt.Sprintf(format, values...)})
	}
	n := cfg.Masters.count()
	quorum := cfg.Masters.quorum()
	switch {
	case cfg.Masters.Embedded:
		add(hazardWarning, "the masters are embedded in this process: a toy for trying the proxy out, which forgets all locks when it ends")
	case n < 3:
		add(hazardWarning, "%s: no master may fail; use 3 or 5", plural(n, "master"))
	case n%2 == 0:
		add(hazardWarning, "%d masters is an even number: as many may fail as with %d, and one more must answer; use %d or %d", n, n-1, n-1, n+1)
	}
	if cfg.Upstream.Kind == UpstreamEmbedded {
		add(hazardWarning, "the upstream is embedded in this process: a toy for trying the proxy out, which forgets everything when it ends")
	}
	if upstream != nil {
		if upstream.err != nil {
			add(hazardAbsent, "the upstream (%s) cannot be used: %v", upstream.name, upstream.err)
		}
		for i, master := range cfg.Masters.servers {
			sameRun := upstream.runID != "" && upstream.runID == masters[i].runID
			if sameRun || master.same(cfg.Upstream.server) {
				add(hazardWarning, "the upstream (%s) is also master %d: FLUSHALL on it erases that master's locks, and both fail together", upstream.name, i+1)
			}
		}
	}
	answering := 0
	for i, master := range masters {
		if master.err != nil {
			add(hazardAbsent, "%s (%s) cannot be used: %v", master.title, master.name, master.err)
			continue
		}
		answering++
		for _, earlier := range masters[:i] {
			if master.runID != "" && master.runID == earlier.runID {
				add(hazardRefused, "%s (%s) and %s (%s) are one server (run_id %s); one server has one vote",
					earlier.title, earlier.name, master.title, master.name, shortRunID(master.runID))
			}
		}
		found = append(found, master.hazards(upstream)...)
	}
	if len(masters) > 0 && answering < quorum {
		add(hazardAbsent, "%d of %d masters can be used, %d are needed to decide a lock", answering, n, quorum)
	}
	return found
}

// hazards judges one master that answered.
func (f serverFacts) hazards(upstream *serverFacts) []hazard {
	var found []hazard
	add := func(level hazardLevel, format string, values ...any) {
		found = append(found, hazard{level, fmt.Sprintf("%s (%s) ", f.title, f.name) + fmt.Sprintf(format, values...)})
	}
	if f.untold != nil {
		add(hazardWarning, "does not tell what it is: %v", f.untold)
		return found
	}
	if f.role != "master" {
		add(hazardRefused, "is a replica: what it holds can be overwritten by its own master; list independent servers")
	}
	if f.cluster {
		add(hazardRefused, "runs in cluster mode: it refuses keys of other slots; list independent servers")
	}
	if f.maxmemory && f.policy != "noeviction" {
		add(hazardWarning, "may evict locks when its memory is full (maxmemory-policy %s); set noeviction", f.policy)
	}
	if upstream != nil && f.databases > 0 && f.databases < upstream.databases {
		add(hazardWarning, "has %s, the upstream has %d: locks in a higher database cannot be stored", plural(f.databases, "database"), upstream.databases)
	}
	return found
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func shortRunID(id string) string { return id[:min(len(id), 8)] }

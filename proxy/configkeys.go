package proxy

import (
	"errors"
	"math"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// configReader fills a Config from a file's nodes and keeps what the checks
// across keys need to know: where each stood.
type configReader struct {
	yamlReader
	cfg         *Config
	lines       map[string]int // of the top keys
	masterLines []int          // parallel to cfg.Masters.servers
	masterKeys  []string       // likewise
}

// parseConfig reads a whole file. Keys left out keep their defaults, except
// upstream and masters: a file that forgets them would silently hold its locks
// in a toy.
func parseConfig(file string, text []byte) (*Config, error) {
	r := configReader{yamlReader: yamlReader{file: file, places: map[string]int{}}, cfg: defaultConfig()}
	r.cfg.Source, r.cfg.places = file, r.places
	top := r.document(text)
	switch {
	case len(r.problems) > 0: // nothing more can be said of it
	case top == nil:
		r.fail(0, "", "the file is empty; it needs at least the keys upstream and masters")
	default:
		r.readTop(top)
		if top.Kind == yaml.MappingNode {
			r.checkTogether()
		}
	}
	if len(r.problems) > 0 {
		return nil, r.problems
	}
	return r.cfg, nil
}

func (r *configReader) readTop(top *yaml.Node) {
	cfg := r.cfg
	r.lines = r.mapping(top, "",
		r.text("listen", "host:port or unix:/path", keep(&cfg.Listen, func(text string) (string, error) {
			if text == "" {
				return "", nil
			}
			return parseListen(text, true)
		})),
		r.text("unix_permissions", "permissions such as 0770", keep(&cfg.UnixPermissions, parsePermissions)),
		yamlField{name: "tls", read: r.readTLS},
		r.text("admin", "host:port, or \"\" for none", keep(&cfg.Admin, parseListenOrNone)),
		r.text("upstream", "a URL, embedded or none", keep(&cfg.Upstream, parseUpstream)),
		yamlField{name: "masters", read: r.readMasters},
		yamlField{name: "locks", read: r.readLocks},
		r.duration("master_timeout", &cfg.MasterTimeout, time.Millisecond, time.Minute),
		yamlField{name: "retry", read: func(node *yaml.Node, key string) {
			r.mapping(node, key,
				r.integer("count", &cfg.Retry.Count, 0, 100),
				r.duration("delay", &cfg.Retry.Delay, 0, time.Minute))
		}},
		r.text("clock_drift", "a number", keep(&cfg.ClockDrift, func(text string) (float64, error) {
			return parseFraction(text, 0, 0.5)
		})),
		r.duration("restart_delay", &cfg.RestartDelay, 100*time.Millisecond, 24*time.Hour),
		r.duration("max_quarantine", &cfg.MaxQuarantine, 100*time.Millisecond, 7*24*time.Hour),
		yamlField{name: "auth", read: r.readAuth},
		r.duration("auth_cache", &cfg.Auth.Cache, 0, 24*time.Hour),
		yamlField{name: "limits", read: func(node *yaml.Node, key string) {
			var fields []yamlField
			for _, limit := range cfg.Limits.table() {
				fields = append(fields, limit.field(r))
			}
			r.mapping(node, key, fields...)
		}},
		yamlField{name: "log", read: func(node *yaml.Node, key string) {
			r.mapping(node, key,
				r.choice("level", &cfg.Log.Level, "debug", "info", "warn", "error"),
				r.choice("format", &cfg.Log.Format, "text", "json"))
		}},
	)
}

func (r *configReader) duration(name string, place *time.Duration, from, to time.Duration) yamlField {
	return r.text(name, "a duration", keep(place, func(text string) (time.Duration, error) {
		return parseDuration(text, from, to)
	}))
}

func (r *configReader) integer(name string, place *int, from, to int) yamlField {
	return r.text(name, "a whole number", keep(place, func(text string) (int, error) {
		return parseInteger(text, from, to)
	}))
}

func (r *configReader) choice(name string, place *string, allowed ...string) yamlField {
	return r.text(name, "one of "+strings.Join(allowed, ", "), keep(place, func(text string) (string, error) {
		return parseChoice(text, allowed...)
	}))
}

func parseUpstream(text string) (Upstream, error) {
	switch text {
	case "embedded":
		return Upstream{Kind: UpstreamEmbedded}, nil
	case "none":
		return Upstream{Kind: UpstreamNone}, nil
	}
	server, err := parseEndpoint(text)
	if err != nil {
		return Upstream{}, errors.New(err.Error() + "; or the word embedded or none")
	}
	return Upstream{Kind: UpstreamServer, server: server}, nil
}

func (r *configReader) readMasters(node *yaml.Node, key string) {
	const allowed = "must be the word embedded or a list of server URLs"
	r.cfg.Masters = Masters{}
	if node.Kind == yaml.ScalarNode {
		if node.Value != "embedded" {
			r.fail(node.Line, key, allowed)
		}
		r.cfg.Masters.Embedded = true
		return
	}
	if node.Kind != yaml.SequenceNode {
		r.fail(node.Line, key, allowed)
		return
	}
	if len(node.Content) == 0 {
		r.fail(node.Line, key, "the list is empty; at least 1 master is needed, and 3 or 5 to survive the loss of one or two")
	}
	r.sequence(node, key, r.readMaster)
}

func (r *configReader) readMaster(node *yaml.Node, key string) {
	text, ok := r.scalar(node, key, "a server URL")
	if !ok {
		return
	}
	server, err := parseEndpoint(text)
	switch {
	case text == "embedded":
		r.fail(node.Line, key, "embedded cannot stand in a list; write masters: embedded for five of them")
		return
	case err != nil:
		r.fail(node.Line, key, "%s", err)
		return
	case server.db != 0:
		r.fail(node.Line, key, "a master's URL names no database: a lock in database n lives in database n of every master")
		return
	}
	for i, earlier := range r.cfg.Masters.servers {
		if server.same(earlier) {
			r.fail(node.Line, key, "%s is the master of line %d (%s) again; one server has one vote", server.name, r.masterLines[i], earlier.name)
			return
		}
	}
	r.cfg.Masters.servers = append(r.cfg.Masters.servers, server)
	r.masterLines = append(r.masterLines, node.Line)
	r.masterKeys = append(r.masterKeys, key)
}

// readCompanions reads what goes with a rule's locks without being one.
func (r *configReader) readCompanions(node *yaml.Node, key string, rule *lockRule) {
	const allowed = "must be a list of Redis globs such as [\"queue:*\"]"
	if node.Kind != yaml.SequenceNode {
		r.fail(node.Line, key, allowed)
		return
	}
	r.sequence(node, key, func(node *yaml.Node, key string) {
		switch glob, ok := r.scalar(node, key, "a Redis glob"); {
		case !ok:
		case glob == "":
			r.fail(node.Line, key, "is empty; write a Redis glob over the whole key or channel")
		default:
			rule.companions = append(rule.companions, glob)
		}
	})
}

func (r *configReader) readLocks(node *yaml.Node, key string) {
	if node.Kind != yaml.SequenceNode {
		r.fail(node.Line, key, "must be a list of rules such as - match: \"lock:*\"")
		return
	}
	if len(node.Content) == 0 {
		r.fail(node.Line, key, "the list is empty; without a rule no key is a lock (write - match: \"lock:*\")")
	}
	r.cfg.Locks = nil
	var lines []int
	r.sequence(node, key, func(node *yaml.Node, key string) {
		before := len(r.problems)
		rule := lockRule{db: anyDB}
		seen := r.mapping(node, key,
			r.text("match", "a Redis glob such as \"lock:*\"", keep(&rule.match, func(text string) (string, error) {
				if text == "" {
					return "", errors.New("is empty; write a Redis glob over the whole key, such as \"lock:*\"")
				}
				return text, nil
			})),
			r.integer("db", &rule.db, 0, math.MaxInt32),
			r.duration("default_ttl", &rule.defaultTTL, 0, 365*24*time.Hour),
			yamlField{name: "companions", read: func(node *yaml.Node, key string) { r.readCompanions(node, key, &rule) }},
			yamlField{name: "users", read: func(node *yaml.Node, key string) { r.readRuleUsers(node, key, &rule) }})
		if len(r.problems) > before {
			return
		}
		if _, ok := seen["match"]; !ok {
			r.fail(node.Line, key, "has no match; write a Redis glob over the whole key, such as match: \"lock:*\"")
			return
		}
		for i, earlier := range r.cfg.Locks {
			if earlier.match == rule.match && (earlier.db == anyDB || earlier.db == rule.db) {
				r.fail(node.Line, key, "never counts: the rule of line %d matches the same keys and stands first", lines[i])
				return
			}
		}
		r.cfg.Locks = append(r.cfg.Locks, rule)
		lines = append(lines, node.Line)
	})
}

package config

import (
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/proxy/route"
)

// parseConfig parses a whole file. Missing keys keep their defaults, except upstream and
// masters. Without these, the proxy would silently hold its locks in an embedded server.
func parseConfig(file string, text []byte) (*Config, error) { return parse(file, text, Flags{}) }

// parse is parseConfig with flags.
func parse(file string, text []byte, flags Flags) (*Config, error) {
	cfg := Demo()
	r := &configReader{file: file, places: map[string]int{}}
	cfg.Source, cfg.places = file, r.places
	top := r.document(text)
	switch {
	case len(r.problems) > 0: // the file is not valid YAML, so there is nothing more to check
	case top == nil:
		r.failAt(0, "", "the file is empty; it needs at least the keys upstream and masters")
	default:
		r.read(top, "", cfg, "")
		if flags.Learn {
			cfg.Locks = nil
		}
		if cfg.AdminFlag = flags.Admin; flags.Admin != "" {
			cfg.Admin = flags.Admin
		}
		if top.Kind == yaml.MappingNode {
			configChecks{r, cfg}.all()
		}
	}
	if len(r.problems) > 0 {
		slices.SortStableFunc(r.problems, func(a, b Problem) int { return a.line - b.line })
		return nil, r.problems
	}
	return cfg, nil
}

// readOwn reads values that are more than a struct or a single value. It returns false if
// place is no such value.
func (r *configReader) readOwn(node *yaml.Node, key string, place any, tag reflect.StructTag) bool {
	switch place := place.(type) {
	case *Masters:
		*place = r.masters(node, key, tag)
	case *route.Rules:
		*place = r.rules(node, key, tag)
	case *[]User:
		*place = readList(r, node, key, tag, User{May: RightBoth})
	case *[]string:
		*place = readList(r, node, key, tag, "")
	case *endpoint.Secret:
		r.secret(node, key, place)
	case *Auth:
		if node.Kind != yaml.ScalarNode {
			return false
		}
		if place.Upstream = node.Value == "upstream"; !place.Upstream {
			r.fail(key, "must be the word upstream or a mapping with the keys password, password_file, password_env, may, users")
		}
	default:
		return false
	}
	return true
}

func (r *configReader) masters(node *yaml.Node, key string, tag reflect.StructTag) (m Masters) {
	isEmbedded := func(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.Value == "embedded" }
	at := slices.IndexFunc(node.Content, isEmbedded)
	switch {
	case isEmbedded(node):
		return Masters{Embedded: true}
	case node.Kind != yaml.SequenceNode:
		r.fail(key, "must be the word embedded or a list of server URLs")
		return Masters{}
	case len(node.Content) == 0:
		r.fail(key, "the list is empty; at least 1 master is needed, and 3 or 5 to survive the loss of one or two")
	case at >= 0:
		r.failAt(node.Content[at].Line, elementKey(key, at), "embedded cannot stand in a list; write masters: embedded for five of them")
		return Masters{}
	}
	return Masters{Servers: readList(r, node, key, tag, endpoint.Endpoint{})}
}

// secret reads a password from the configuration itself (password), from a file
// (password_file) or from an environment variable (password_env). Only one of these keys
// may be set. Errors never show a password, nor a value that may be a password at the
// wrong place.
func (r *configReader) secret(node *yaml.Node, key string, place *endpoint.Secret) {
	stem, last, _ := strings.Cut(key, "password")
	for _, other := range []string{"", "_file", "_env"} {
		if other != last && r.has(stem+"password"+other) {
			r.fail(key, "is set besides password%s; use only one of them", other)
			return
		}
	}
	if node.Kind != yaml.ScalarNode {
		r.fail(key, "must be a single value, not a list or a mapping")
		return
	}
	var err error
	switch last {
	case "_file":
		*place, err = endpoint.SecretFromFile(node.Value)
	case "_env":
		*place, err = endpoint.SecretFromEnvironment(node.Value)
	default:
		*place = endpoint.Secret(node.Value)
	}
	if err != nil {
		r.fail(key, "%s", err)
	}
}

// noRuleUsers is the error for a key that rules once had. It kept nobody from another
// user's locks, because a script reaches every key of a master.
const noRuleUsers = "rules have no users any more, because a script of any user who may use locks reaches all lock keys; delete this key, " +
	"and write may: upstream in auth for users whom you do not trust with all locks, or give them a proxy and masters of their own"

func (r *configReader) rules(node *yaml.Node, key string, tag reflect.StructTag) route.Rules {
	if node.Kind == yaml.ScalarNode && node.Value == "learn" {
		return nil
	}
	rules := readList(r, node, key, tag, route.Rule{DB: route.AnyDB})
	if len(rules) == 0 && r.sound(key) {
		r.fail(key, "the list is empty; without a rule no key is a lock (write - match: \"lock:*\", or the word learn to find out which keys are)")
	}
	for i, rule := range rules {
		if key := elementKey(key, i); r.sound(key) {
			r.checkRule(key, rule, rules[:i])
		}
	}
	return rules
}

// checkRule reports the mistakes in a rule. earlier are the rules before it.
func (r *configReader) checkRule(key string, rule route.Rule, earlier route.Rules) {
	switch {
	case !r.has(key + ".match"):
		r.fail(key, "has no match; write a Redis glob over the whole key, such as match: \"lock:*\"")
		return
	case rule.Match == "":
		r.fail(key+".match", "is empty; write a Redis glob over the whole key, such as \"lock:*\"")
		return
	}
	for i, glob := range rule.Companions {
		if glob == "" {
			r.fail(elementKey(key+".companions", i), "is empty; write a Redis glob over the whole key or channel")
		}
	}
	if r.has(key+".renew") && rule.Renew == 0 {
		r.fail(key+".renew", "must be longer than 0s; leave the key out, and no lock is renewed")
	}
	at := slices.IndexFunc(earlier, func(e route.Rule) bool { return e.Match == rule.Match && (e.DB == route.AnyDB || e.DB == rule.DB) })
	if at >= 0 {
		before, _, _ := strings.Cut(key, "[")
		r.fail(key, "is never used: the rule on line %d matches the same keys first", r.places[elementKey(before, at)])
	}
}

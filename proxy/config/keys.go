package config

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/proxy/route"
)

func (r *configReader) readMasters(node *yaml.Node, key string, s setting) (m Masters) {
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
	return Masters{Servers: readList(r, node, key, s, func(server *endpoint.Endpoint) []setting {
		return []setting{{name: s.name + "[]", place: server}}
	})}
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

func (r *configReader) readRules(node *yaml.Node, key string, s setting) route.Rules {
	if node.Kind == yaml.ScalarNode && node.Value == "learn" {
		return nil
	}
	rules := readList(r, node, key, s, func(rule *route.Rule) []setting {
		*rule = *newRule()
		return ofRule(rule)
	})
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

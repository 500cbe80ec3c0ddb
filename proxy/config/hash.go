package config

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"
)

// Hash is equal for proxies that agree on all settings that proxies over the same masters should share.
// It covers no secret, and it fits the integers that a metric can show exactly. The hashed text has
// names and units of its own, so that different versions of the proxy show one hash.
func (c *Config) Hash() uint64 {
	var members []string
	add := func(name string, value any) {
		text, err := json.Marshal(value)
		if err != nil {
			panic(err) // cannot happen with plain values
		}
		members = append(members, fmt.Sprintf("%q:%s", name, text))
	}
	if c.Masters.Embedded {
		add("embedded", true)
	}
	for _, s := range c.settings() {
		switch {
		case s.traits&shared == 0:
		case s.name == "masters":
			add(s.name, c.Masters.Names())
		case s.name == "locks":
			add("rules", c.Locks) // by the tags of route.Rule
		default:
			add(strings.ReplaceAll(s.name, ".", "_"), s.place)
		}
	}
	hash := fnv.New64a()
	fmt.Fprintf(hash, "{%s}", strings.Join(members, ","))
	return hash.Sum64() >> 12
}

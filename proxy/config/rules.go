package config

import (
	"strconv"
	"strings"

	"redlock-proxy/proxy/route"
)

// newRule is a rule whose keys are left out.
func newRule() *route.Rule {
	rule := &route.Rule{DB: route.AnyDB}
	reset(ofRule(rule))
	return rule
}

// DescribeRule describes a whole rule as text: its match, and what else a file would have.
func DescribeRule(rule route.Rule) string {
	text := strconv.Quote(rule.Match)
	without := ofRule(newRule())
	for i, s := range ofRule(&rule) {
		if value := s.text(); s.name != "locks[].match" && value != without[i].text() {
			text += ", " + strings.TrimPrefix(s.name, "locks[].") + " " + value
		}
	}
	return text
}

// DescribeCoverage describes only the keys and companions that a rule covers.
func DescribeCoverage(rule route.Rule) string {
	return DescribeRule(route.Rule{Match: rule.Match, DB: rule.DB, Companions: rule.Companions})
}

// describeGlobs describes a list of globs as text.
func describeGlobs(globs []string) string {
	if len(globs) == 0 {
		return "nothing"
	}
	texts := make([]string, len(globs))
	for i, glob := range globs {
		texts[i] = strconv.Quote(glob)
	}
	return strings.Join(texts, " ")
}

// DescribeRules describes all rules as text.
func DescribeRules(rules route.Rules) string {
	if len(rules) == 0 {
		return "learn"
	}
	texts := make([]string, len(rules))
	for i, rule := range rules {
		texts[i] = DescribeRule(rule)
	}
	return strings.Join(texts, "; ")
}

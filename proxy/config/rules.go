package config

import (
	"strconv"
	"strings"

	"redlock-proxy/proxy/route"
)

// DescribeRule describes a whole rule as text.
func DescribeRule(rule route.Rule) string {
	text := strconv.Quote(rule.Match)
	if rule.DB != route.AnyDB {
		text += ", database " + strconv.Itoa(rule.DB)
	}
	if rule.DefaultTTL > 0 {
		text += ", default TTL " + ShortDuration(rule.DefaultTTL)
	}
	if rule.Wait > 0 {
		text += ", wait " + ShortDuration(rule.Wait)
	}
	if rule.Renew > 0 {
		text += ", renewed for " + ShortDuration(rule.Renew)
	}
	if rule.Release {
		text += ", released on disconnect"
	}
	if len(rule.Companions) > 0 {
		text += ", companions " + DescribeGlobs(rule.Companions)
	}
	return text
}

// DescribeCoverage describes only the keys and companions that a rule covers.
func DescribeCoverage(rule route.Rule) string {
	rule.DefaultTTL, rule.Wait, rule.Renew, rule.Release = 0, 0, 0, false
	return DescribeRule(rule)
}

// DescribeGlobs describes a list of globs as text.
func DescribeGlobs(globs []string) string {
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

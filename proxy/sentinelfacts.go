package proxy

import (
	"fmt"
	"strings"
)

// sentinelLine says for -check what the Sentinels said; "" where there are none.
func (f serverFacts) sentinelLine() string {
	s := f.sentinels
	if s.asked == 0 {
		return ""
	}
	text := fmt.Sprintf("%s (%s) is managed by %s, of which %d answer", f.title, f.name, plural(s.asked, "Sentinel"), s.answered)
	if s.master != "" {
		text += fmt.Sprintf(": the master is %s (named by %d), with %s", s.master, s.named[s.master], plural(s.replicas, "replica"))
	}
	return text
}

// sentinelHazards are warnings: what matters now is whether the master can be
// reached, which others judge; these keep a failover from happening.
func (f serverFacts) sentinelHazards() []hazard {
	var found hazardList
	s := f.sentinels
	if s.asked == 0 {
		return nil
	}
	add := func(format string, values ...any) {
		found.add(hazardWarning, "sentinel", f.name, fmt.Sprintf("%s (%s): ", f.title, f.name)+format, values...)
	}
	if s.answered <= s.asked/2 {
		add("%d of %s answer, and a failover needs a majority of them (%s)", s.answered, plural(s.asked, "Sentinel"), strings.Join(s.silent, "; "))
	}
	if len(s.named) > 1 {
		add("its Sentinels name different masters; the one of the latest configuration is used")
	}
	if s.answered > 0 && s.replicas == 0 {
		add("its Sentinels know no replica that could be promoted")
	}
	return found
}

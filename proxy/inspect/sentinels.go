package inspect

import (
	"fmt"
	"strings"

	"redlock-proxy/proxy/config"
)

// sentinelLine describes the Sentinels' answers for -check. It is "" if there are none.
func (f Facts) sentinelLine() string {
	s := f.sentinels
	if s.Asked == 0 {
		return ""
	}
	text := fmt.Sprintf("%s (%s) is managed by %s, of which %d answer", f.title, f.Name, config.Plural(s.Asked, "Sentinel"), s.Answered)
	if s.Master != "" {
		text += fmt.Sprintf(": the master is %s (named by %d), with %s", s.Master, s.Named[s.Master], config.Plural(s.Replicas, "replica"))
	}
	return text
}

// sentinelHazards are things that would prevent a failover. They are warnings, because
// locks need only a reachable master now, and Hazards judges that.
func (f Facts) sentinelHazards() []Hazard {
	var found hazardList
	s := f.sentinels
	if s.Asked == 0 {
		return nil
	}
	add := func(format string, values ...any) {
		found.add(hazardWarning, "sentinel", f.Name, fmt.Sprintf("%s (%s): ", f.title, f.Name)+format, values...)
	}
	if s.Answered <= s.Asked/2 {
		add("%d of %s answer, and a failover needs a majority of them (%s)", s.Answered, config.Plural(s.Asked, "Sentinel"), strings.Join(s.Silent, "; "))
	}
	if len(s.Named) > 1 {
		add("its Sentinels name different masters; the one of the latest configuration is used")
	}
	if s.Answered > 0 && s.Replicas == 0 {
		add("its Sentinels know no replica that could be promoted")
	}
	return found
}

package proxy

import (
	"context"
	"fmt"
	"strings"
)

// sentinelFacts is what the Sentinels of one server said.
type sentinelFacts struct {
	asked   int
	answers []sentinelAnswer // in no order, errors too; nil: none manage it
}

// facts asks every Sentinel.
func (g *sentinelGroup) facts(ctx context.Context) sentinelFacts {
	if g == nil {
		return sentinelFacts{}
	}
	all := func([]sentinelAnswer) bool { return false }
	return sentinelFacts{asked: len(g.addresses), answers: g.ask(ctx, all)}
}

// answering are those that know the master, by the one they name.
func (f sentinelFacts) answering() (n, replicas int, masters map[string]int, silent []string) {
	masters = map[string]int{}
	for _, answer := range f.answers {
		if answer.err != nil {
			silent = append(silent, fmt.Sprintf("%s: %v", answer.sentinel, answer.err))
			continue
		}
		n++
		replicas = max(replicas, answer.replicas)
		masters[answer.master]++
	}
	return n, replicas, masters, silent
}

// sentinelLine says for -check what the Sentinels said; "" where there are none.
func (f serverFacts) sentinelLine() string {
	if f.sentinels.asked == 0 {
		return ""
	}
	n, replicas, masters, _ := f.sentinels.answering()
	text := fmt.Sprintf("%s (%s) is managed by %s, of which %d answer", f.title, f.name, plural(f.sentinels.asked, "Sentinel"), n)
	if address, err := agreedMaster(f.name, f.sentinels.answers); err == nil {
		text += fmt.Sprintf(": the master is %s (named by %d), with %s", address, masters[address], plural(replicas, "replica"))
	}
	return text
}

// sentinelHazards are warnings: what matters now is whether the master can be
// reached, which others judge; these keep a failover from happening.
func (f serverFacts) sentinelHazards() []hazard {
	var found hazardList
	if f.sentinels.asked == 0 {
		return nil
	}
	add := func(format string, values ...any) {
		found.add(hazardWarning, "sentinel", f.name, fmt.Sprintf("%s (%s): ", f.title, f.name)+format, values...)
	}
	n, replicas, masters, silent := f.sentinels.answering()
	if n <= f.sentinels.asked/2 {
		add("%d of %s answer, and a failover needs a majority of them (%s)", n, plural(f.sentinels.asked, "Sentinel"), strings.Join(silent, "; "))
	}
	if len(masters) > 1 {
		add("its Sentinels name different masters; the one of the latest configuration is used")
	}
	if n > 0 && replicas == 0 {
		add("its Sentinels know no replica that could be promoted")
	}
	return found
}

package roster

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/quorum"
)

// What scripts print.

// shows prints what has changed for a process that watches.
func (s *script) shows(p *actor) {
	if p.shown == nil {
		return
	}
	if p.watches {
		s.looks(p)
	}
	s.tells(p)
	seen := s.sees(p)
	for _, key := range slices.Sorted(maps.Keys(seen)) {
		if p.shown[key] != seen[key] {
			s.Printf("%s%s", map[bool]string{true: "q: "}[p.name == "q"], seen[key])
		}
	}
	p.shown = seen
}

// sees returns what a process knows: the state of each place, who the masters are, and what they told.
func (s *script) sees(p *actor) map[string]string {
	seen := map[string]string{}
	for at, v := range p.r.views {
		name := p.r.names(at.Master)
		if at.DB > 0 {
			name += fmt.Sprintf(".%d", at.DB)
		}
		seen[fmt.Sprintf("%2d.%4d", at.Master, at.DB)] = fmt.Sprintf("%s %v%s%s", name, v.told.State, s.because(v.told.Reason, v.told.Until), s.remarks(v))
	}
	r := p.r
	seen["record"] = fmt.Sprintf("set %q, epoch %d, joined %s, %d masters", r.set, r.epoch, strings.Join(r.joined, ","), r.masters)
	seen["ttl"] = fmt.Sprintf("the longest TTL is %v, known: %v; %d remember; token %d", r.granted(s.time()), r.recalls, r.remembering(), r.token)
	if r.set == "" {
		seen["reason"] = r.reason
	}
	return seen
}

// remarks tells what else a process knows of a place.
func (s *script) remarks(v *view) (text string) {
	if v.told.Longest > 0 {
		text = fmt.Sprintf(", with a TTL of %v, covers %v", v.told.Longest, v.told.Covers)
	}
	if v.absent() {
		text += ", missing since " + s.clockTime(v.since)
	}
	if v.blank {
		text += ", may begin as new"
	}
	return text
}

// tells prints the notices of a process, apart from the states that a process that watches shows anyway.
func (s *script) tells(p *actor) {
	news := p.r.Ready()
	p.news.Turned, p.news.Changed = p.news.Turned || news.Turned, p.news.Changed || news.Changed
	for _, n := range news.Notices {
		if n.Standing != nil {
			if p.shown == nil || !p.watches {
				s.Printf("%s is %v%s", n.Standing.Name, n.Standing.State, s.because(n.Standing.Reason, n.Standing.Until))
			}
			continue
		}
		text := n.Text
		for i := 0; i < len(n.Fields); i += 2 {
			if n.Fields[i] != "set" && n.Fields[i] != "before" {
				text += fmt.Sprintf(" %v=%v", n.Fields[i], n.Fields[i+1])
			}
		}
		s.Printf("%s", text)
	}
}

// plans prints the writes that a process plans, and makes them.
func (s *script) plans(p *actor, only bool) {
	p.planned = p.r.Tick(s.time(), scriptLimits)
	s.tells(p)
	for _, m := range p.planned {
		kind := [...]string{"the marker", "the marker where it lacks", "all markers", "in all markers who the masters are"}[m.Kind]
		why := ""
		if m.Reason != "" {
			why = fmt.Sprintf(": %v: %s", m.Cause, m.Reason)
		}
		to := p.r.names(m.Master)
		if m.DB > 0 {
			to += fmt.Sprintf(".%d", m.DB)
		}
		if m.Kind == EditAll {
			s.Printf("writes to %s %s: epoch=%d joined=%s%s%s", to, kind, m.Marker.Epoch, strings.Join(m.Marker.Joined, ","), map[bool]string{true: ", and turns"}[m.Turn], why)
		} else {
			set := ""
			if p.shown != nil {
				set = fmt.Sprintf(" set=%s token=%d", m.Marker.Set, m.Marker.Token)
			}
			s.Printf("writes to %s %s: run=%s since=%s quarantine=%v before=%v%s%s", to, kind, m.Marker.Run, marker.WrittenTime(m.Marker.Since), m.Marker.Quarantine, m.Marker.Before, set, why)
		}
		if !only {
			s.writes(p, []Write{m})
		}
	}
}

func (s *script) writes(p *actor, writes []Write) {
	for _, m := range writes {
		server := p.servers[m.Place]
		if server == nil || p.runs[m.Place] != server.run || !server.write(s.world, m, math.MaxInt64) {
			s.Printf("which is not what is there any more")
			continue
		}
		s.reads(p, m.Place, 0)
		p.r.Step(Wrote{m}, s.time())
		s.tells(p)
	}
}

func (s *script) stands(p *actor, status Status) {
	for _, m := range append(status.Masters, status.Others...) {
		longest := ""
		if m.Longest > 0 {
			longest = fmt.Sprintf(", with a TTL of %v", m.Longest)
		}
		s.Printf("%s %v%s%s", m.Name, m.State, s.because(m.Reason, m.Until), longest)
	}
	if !status.NextChange.IsZero() {
		tell := ""
		if status.TellAll {
			tell = ", and every process must have the new list"
		}
		s.Printf("%d of %d are needed; the next change may come at %v%s", status.Needed, len(status.Masters), status.NextChange.Sub(worldBegan), tell)
	}
	if p.shown != nil {
		var asked quorum.Set
		for i := range len(p.r.servers) + 1 {
			if p.r.Asks(i) {
				asked |= 1 << i
			}
		}
		s.Printf("ready: %v, asks %s, new until %s %s", status.Ready(), p.letters(asked), s.clockTime(status.NewUntil), status.Reason)
	}
}

// surveys prints what an observer from outside finds.
func (s *script) surveys(words []string) {
	found := make([]Found, len(s.at))
	if len(words) > 0 && placeOf(words[0]).Master >= 0 {
		found = make([]Found, placeOf(words[0]).Master+1)
	}
	for i := range found {
		found[i] = Found{Server: Server{Name: string(rune('a' + i))}, Reached: !slices.Contains(words, "without") || !slices.Contains(words, strconv.Itoa(i+1)), Clock: time.Duration(s.time().UnixNano())}
		if i < len(s.at) {
			found[i].Run, found[i].Marker = s.at[i].run, s.at[i].texts[0]
		}
	}
	for i, st := range Survey(found, s.time()) {
		s.Printf("%s %v%s", found[i].Name, st.State, s.because(st.Reason, st.Until))
	}
}

// letters are the names of some masters.
func (p *actor) letters(set quorum.Set) string {
	var names []string
	for i := range len(p.r.servers) + 1 {
		if set.Has(i) {
			names = append(names, p.r.names(i))
		}
	}
	return cmp.Or(strings.Join(names, " "), "-")
}

// clockTime is a time since the script began.
func (s *script) clockTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Sub(worldBegan).String()
}

// because formats a reason and its end, in the script's time.
func (s *script) because(reason string, until time.Time) string {
	if reason != "" {
		reason = ": " + reason
	}
	if !until.IsZero() {
		reason += ", until " + s.clockTime(until)
	}
	return reason
}

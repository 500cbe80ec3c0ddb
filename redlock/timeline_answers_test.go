package redlock

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/redlock/heal"
	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/roster"
	"redlock-proxy/redlock/toymaster"
)

// answer tells what a script asks about, because it is not told by itself.
func (s *stage) answer(question string, words []string) (answer string, isQuestion bool) {
	switch question {
	case "heard": // what masters were told since the last heard; "heard SET": how often; "heard SET in full": when, and with which arguments
		return s.heard(words), true
	case "ttls":
		return s.ttls(), true
	case "records": // the masters' markers
		return s.records(), true
	case "status": // of a process
		return s.status(words[0]), true
	case "prospects": // of a process: who votes now, and after a time
		now, then := s.process(words[0]).Prospects(0, time.Now().Add(datatest.Duration(words[1])))
		return fmt.Sprintf("%d vote, and %d in %s\n", now, then, words[1]), true
	case "ends": // whether all quarantines that a process shows end within 31 seconds, and not in the past
		return s.ends(s.process(words[0])), true
	case "told": // to the Observer since the last told: votes, states or copies; and the debts that wait, and the most that did
		return s.observer.text(words[0]), true
	case "logged":
		return s.observer.logged(), true
	case "dialled": // by a process
		return s.dialled(s.process(words[0])), true
	case "listening":
		return s.listening(), true
	}
	return "", false
}

// heardSince returns the commands that a master got, by name. Our own scripts go by file name.
func (w *timeline) heardSince(master string, from int) []string {
	var words []string
	for _, x := range w.log[from:] {
		name := string(x.Args[0])
		if x.Master != master || name == "INFO" || name == "ROLE" || name == "CLIENT" && string(x.Args[1]) == "ID" {
			continue
		}
		if name == "EVAL" && scriptNames[string(x.Args[1])] != "" {
			name = scriptNames[string(x.Args[1])]
		}
		if name == "CLIENT" {
			name += " " + string(x.Args[1])
		}
		words = append(words, name)
	}
	return words
}

// byMaster tells something of each master, and of those once of which the same is to be told.
func (s *stage) byMaster(tell func(m *toymaster.Master) string) string {
	var texts, names []string
	all := slices.Clone(s.masters)
	for _, name := range slices.Sorted(maps.Keys(s.servers)) {
		if m := s.servers[name]; !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	for _, m := range all {
		text := tell(m)
		i := slices.Index(texts, text)
		if i < 0 {
			texts, names = append(texts, text), append(names, m.Name)
			continue
		}
		names[i] += " " + m.Name
	}
	var out strings.Builder
	for i, text := range texts {
		fmt.Fprintf(&out, "%s: %s\n", names[i], text)
	}
	return out.String()
}

func (s *stage) heard(words []string) string {
	if len(words) != 1 { // so one can ask how often for several commands
		defer func() { s.heardTo, s.heardAt = len(s.log), time.Now() }()
	}
	if len(words) > 1 {
		return s.heardInFull(words[0])
	}
	if len(words) > 0 {
		return s.byMaster(func(m *toymaster.Master) string { return s.heardTimes(m, words[0]) })
	}
	return s.byMaster(func(m *toymaster.Master) string {
		// The Mender's looks at copies change nothing.
		const look = "WATCH, bound.lua, MULTI, PTTL, DUMP, DUMP, PTTL, EXEC"
		heard := strings.ReplaceAll(", "+strings.Join(s.heardSince(m.Name, s.heardTo), ", "), ", "+look, "")
		if heard = strings.TrimPrefix(heard, ", "); heard == "" {
			return "nothing"
		}
		return heard
	})
}

func (s *stage) heardTimes(m *toymaster.Master, name string) string {
	n := 0
	for _, x := range s.log[s.heardTo:] {
		if x.Master == m.Name && string(x.Args[0]) == name {
			n++
		}
	}
	return fmt.Sprintf("%s %d times", name, n)
}

func (s *stage) heardInFull(name string) string {
	var texts []string
	names := map[string][]string{}
	for _, x := range s.log[s.heardTo:] {
		if string(x.Args[0]) != name {
			continue
		}
		text := fmt.Sprintf("after %v: %s", x.At.Sub(s.heardAt), readable(summary(x.Args)))
		if names[text] == nil {
			texts = append(texts, text)
		}
		names[text] = append(names[text], x.Master)
	}
	var out strings.Builder
	for _, text := range texts {
		slices.Sort(names[text])
		fmt.Fprintf(&out, "%s, %s\n", strings.Join(names[text], " "), text)
	}
	return out.String()
}

func (s *stage) ttls() string {
	var words []string
	for _, m := range s.masters {
		words = append(words, lively(m.TTL(key)))
	}
	return strings.Join(words, " ") + "\n"
}

func (s *stage) records() string {
	return s.byMaster(func(m *toymaster.Master) string {
		text := m.Value(marker.Key)
		mark, ok := marker.Parse(text)
		switch {
		case text == "":
			return "none"
		case !ok:
			return text
		}
		words := fmt.Sprintf("longest %v", mark.Granted())
		if mark.Since != 0 {
			words += fmt.Sprintf(", quarantine %v", mark.Quarantine)
		}
		if _, token := marker.CutToken(text); token != 0 {
			words += fmt.Sprintf(", token %d", token)
		}
		if !strings.HasPrefix(mark.ReplID, "first-of-") {
			words += ", replid " + mark.ReplID
		}
		return words
	})
}

func (s *stage) status(name string) string {
	status := s.process(name).Status()
	text := fmt.Sprintf("epoch %d", status.Epoch)
	if status.Reason != "" {
		text += ", no set: " + status.Reason
	}
	in := func(at time.Time) string { return time.Until(at).Round(time.Millisecond).String() }
	if !status.NewUntil.IsZero() {
		text += ", new until in " + in(status.NewUntil)
	}
	if !status.NextChange.IsZero() {
		text += ", next change in " + in(status.NextChange)
	}
	var texts []string
	names := map[string]string{}
	for _, m := range slices.Concat(status.Masters, status.Others) {
		words := m.State.String()
		if m.Reason != "" {
			words += ": " + readable(m.Reason)
		}
		if !m.Until.IsZero() {
			words += ", until in " + in(m.Until)
		}
		if names[words] == "" {
			texts = append(texts, words)
		}
		names[words] += m.Name + " "
	}
	for _, words := range texts {
		text += "\n" + names[words] + words
	}
	return text + "\n"
}

func (s *stage) ends(p *process) string {
	o := p.Get(s.t.Context(), 0, []byte(key))
	if o.Quarantined > 0 && o.Until.Before(time.Now()) {
		return fmt.Sprintf("a client hears of an end %v ago\n", time.Since(o.Until))
	}
	for _, m := range p.Status().Masters {
		if left := time.Until(m.Until); !m.Until.IsZero() && (m.State != roster.Quarantined || left < 0 || left > 31*second) {
			return fmt.Sprintf("%s: %v, in %v\n", m.Name, m.State, left)
		}
	}
	return "yes\n"
}

// dialled tells how often a process has dialled its masters since it was asked.
func (s *stage) dialled(p *process) string {
	var out []string
	for _, m := range s.masters {
		out = append(out, fmt.Sprint(p.links[m.Name].Dialled))
		p.links[m.Name].Dialled = 0
	}
	return strings.Join(out, " ") + "\n"
}

// listening tells which channels the masters tell of.
func (s *stage) listening() string {
	s.Settle()
	return s.byMaster((*toymaster.Master).Listening)
}

// A recorder is the Observer and the log of all processes.
type recorder struct {
	nobody
	votes, states, copies, debts map[string]int
	passes                       int
	log                          lockedText
	logTo                        int
}

func newRecorder() *recorder {
	return &recorder{votes: map[string]int{}, states: map[string]int{}, copies: map[string]int{}, debts: map[string]int{}}
}

func (r *recorder) Voted(master string, vote Vote, _ time.Duration, _ time.Time) {
	r.votes[master+" "+vote.String()]++
}
func (r *recorder) Queued(master string, waiting int) {
	r.debts[master+" now"], r.debts[master+" at most"] = waiting, max(r.debts[master+" at most"], waiting)
}
func (r *recorder) Undone(master string)                { r.votes[master+" undone"]++ }
func (r *recorder) Standing(m roster.MasterStatus)      { r.states[m.Name+" "+m.State.String()]++ }
func (r *recorder) Healed(master string, did heal.Deed) { r.copies[master+" "+did.String()]++ }
func (r *recorder) HealPassed(_ time.Time, complete bool) {
	if complete {
		r.passes++
	}
}

// text tells what was recorded of votes, states or copies since it was asked.
func (r *recorder) text(of string) string {
	counts := map[string]map[string]int{"votes": r.votes, "states": r.states, "copies": r.copies, "debts": r.debts}[of]
	var words []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		words = append(words, fmt.Sprintf("%s %d", what, counts[what]))
	}
	clear(counts)
	if of == "copies" {
		words = append(words, fmt.Sprintf("in %d passes", r.passes))
		r.passes = 0
	}
	if len(words) == 0 {
		return "nothing\n"
	}
	return strings.Join(words, ", ") + "\n"
}

func (r *recorder) logged() string {
	text := r.log.String()
	defer func() { r.logTo = len(text) }()
	if text = text[r.logTo:]; text == "" {
		return "nothing\n"
	}
	return text
}

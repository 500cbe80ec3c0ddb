package roster

import (
	"time"

	"redlock-proxy/redlock/marker"
)

// Found is the result of one look at a master.
type Found struct {
	Server
	Reached bool          // the fields below are known
	Run     string        // the server's run id; empty if it does not say
	Marker  string        // the value of MarkerKey in database 0; empty if there is none
	Clock   time.Duration // the master's own time, since 1970
}

// Survey returns the standing of masters by their markers, from one look at each. It is for an
// observer from outside, which writes nothing and does not vote. The set is the one to which
// most masters belong, however few were reached. If its number of masters was never changed, it
// must have as many as were looked at. Survey does not find reasons against a vote other than the
// marker's.
func Survey(found []Found, now time.Time) []Standing {
	servers := make([]Server, len(found))
	for i, f := range found {
		servers[i] = f.Server
	}
	r := New(servers, false, 0)
	set, staged := commonSet(found)
	if r.set = set; staged {
		r.joined = nil // the markers say how many there are
	}
	standings := make([]Standing, len(found))
	for range 2 { // the first markers are judged again after all are read
		for i, f := range found {
			standings[i] = r.survey(Place{Master: i}, f, now)
		}
	}
	return standings
}

func (r *Roster) survey(p Place, f Found, now time.Time) Standing {
	if !f.Reached {
		return Standing{State: Unreachable, Reason: NotConnected}
	}
	if m, ok := marker.Parse(f.Marker); ok && f.Run == "" {
		f.Run = m.Run
	}
	r.Step(Connected{Place: p, Run: f.Run}, now)
	r.Step(Checked{Place: p, Text: f.Marker, Asked: now}, now)
	standing, m := r.Judge(p)
	return standing.At(m, Reading{Clock: f.Clock, Received: now, Witnessed: true}, Limits{})
}

// commonSet returns the set to which most masters belong, and whether a marker of it says that
// its number of masters was changed. The set is "" if none has a marker.
func commonSet(found []Found) (set string, staged bool) {
	counts, changed := map[string]int{}, map[string]bool{}
	for _, f := range found {
		m, ok := marker.Parse(f.Marker)
		if !ok {
			continue
		}
		changed[m.Set] = changed[m.Set] || m.Joined.IsResized()
		if counts[m.Set]++; counts[m.Set] > counts[set] {
			set = m.Set
		}
	}
	return set, changed[set]
}

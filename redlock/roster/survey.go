package roster

import "time"

// Found is what one look at a master found.
type Found struct {
	Server
	Reached bool          // the rest is known
	Run     string        // the server's run id; empty: it does not say
	Marker  string        // what has the marker's name in database 0; empty: nothing has
	Clock   time.Duration // the master's own time, since 1970
}

// Survey says how masters stand by their markers, as one look at each found them. It
// is for who looks from outside, writes nothing and does not vote: the set is the one
// that most of them belong to, however few were reached. Who may not vote for another
// reason than its marker's is not found here.
func Survey(found []Found, now time.Time) []Standing {
	servers := make([]Server, len(found))
	for i, f := range found {
		servers[i] = f.Server
	}
	r := New(servers, false, 0)
	r.set = commonSet(found)
	standings := make([]Standing, len(found))
	for range 2 { // what the first markers say of the set is judged when all are read
		for i, f := range found {
			standings[i] = r.survey(Place{Master: i}, f, now)
		}
	}
	return standings
}

func (r *Roster) survey(p Place, f Found, now time.Time) Standing {
	if !f.Reached {
		return Standing{State: Away, Reason: NotConnected}
	}
	if m, ok := ParseMarker(f.Marker); ok && f.Run == "" {
		f.Run = m.Run
	}
	if !r.sight(p).connected {
		r.Connected(p, f.Run, "", Replication{}, now)
	}
	standing, m := r.Checked(p, f.Marker, false, now, now)
	return standing.At(m, Reading{Clock: f.Clock, Received: now, Witnessed: true}, Limits{})
}

// commonSet is the set that most masters belong to; empty if none has a marker.
func commonSet(found []Found) string {
	counts, best := map[string]int{}, ""
	for _, f := range found {
		m, ok := ParseMarker(f.Marker)
		if !ok {
			continue
		}
		if counts[m.Set]++; counts[m.Set] > counts[best] {
			best = m.Set
		}
	}
	return best
}

package roster

import (
	"maps"
	"time"

	"redlock-proxy/redlock/marker"
)

// An Event is something that happened to a connection, to a master, or to this process's list.
type Event interface {
	happen(r *Roster, now time.Time)
}

// Step takes over what happened.
func (r *Roster) Step(e Event, now time.Time) { e.happen(r, now) }

// Connected: there is a new connection to a place.
type Connected struct {
	Place
	Run     string
	Problem string // why the server cannot be a master at all; empty if it can
	Replication
}

func (e Connected) happen(r *Roster, now time.Time) {
	p, m := e.Place, r.of(e.Master)
	s := r.view(p)
	r.leaves(s, marker.Marker{}, now)
	r.unjoin(p, s)
	known := &view{} // a jump that is not yet written down concerns all databases
	for other, o := range r.views {
		if other.Master == p.Master && o.run == e.Run && o.jump > known.jump {
			known = o
		}
	}
	if m.run != e.Run {
		m.run, m.eviction, m.evicted = e.Run, "", false
	}
	*s = view{connected: true, run: e.Run, problem: e.Problem, Replication: e.Replication, told: s.told,
		jump: known.jump, jumpedAt: known.jumpedAt, last: known.last, lastAt: known.lastAt}
	r.changed()
}

// Disconnected: a connection has ended, or could not be opened.
type Disconnected struct {
	Place
	Reason string // for people
}

func (e Disconnected) happen(r *Roster, now time.Time) {
	s := r.view(e.Place)
	r.leaves(s, marker.Marker{}, now)
	r.unjoin(e.Place, s)
	s.connected, s.read = false, false
	r.stands(e.Place, s, Standing{State: Unreachable, Reason: e.Reason}, now)
}

// Asked: the marker of a place was read, and apart from the token it is as Checked said last.
type Asked struct {
	Place
	At    time.Time // when the question was asked
	Token int64
}

func (e Asked) happen(r *Roster, _ time.Time) {
	if s := r.views[e.Place]; s != nil && e.At.After(s.asked) && !s.hasLapsed(e.At) {
		s.asked = e.At
		r.tokenRead(s, e.Token)
		r.meets(e.Place, s)
	}
}

// Checked: the marker of a place was read. Judge says what follows.
type Checked struct {
	Place
	Text   string
	Broken bool // the key of the marker holds no text
	Asked  time.Time
	Jump   Jump // of the master's clock, as this answer shows it
}

func (e Checked) happen(r *Roster, now time.Time) {
	if e.Jump.Forward() {
		r.jumped(e.Master, e.Jump, now)
	}
	text, token := marker.CutToken(e.Text) // a new token is no news, and changes nothing but itself
	p, s, m := e.Place, r.view(e.Place), r.of(e.Master)
	s.read, s.asked = s.read && !s.hasLapsed(e.Asked), e.Asked
	next, ok := marker.Parse(text)
	broken := e.Broken || text != "" && !ok
	if ok {
		delete(r.outrun, p)
	} else if marker.IsLater(text) {
		// rule: a process that cannot read a marker of its set writes none
		r.outrun[p] = true
	}
	news := !s.read || s.text != text || s.broken != broken
	if news {
		r.leaves(s, next, now)
		// A marker that was read before, on an earlier connection, does not record the eviction.
		if before := m.kept; p.DB == 0 && before.Set != "" && next.Since > before.Since && m.evicted {
			m.evicted = false // the marker now records that it may have forgotten
			r.rewrites(p, now)
		}
		if s.turnedAt.IsZero() || next.Turned != s.marker.Turned {
			s.turnedAt = now
		}
		if !s.read || !s.marker.SameMemory(next) || broken {
			s.since, s.lacks = now, r.ttls
		}
		s.marker, s.broken = next, broken
		// rule: a master whose marker is missing anew does not begin as new
		s.actedAt, s.ahead, s.blank = time.Time{}, false, false
	}
	s.read, s.text = true, text
	if s.present() && p.DB == 0 {
		m.kept = s.marker
	}
	if s.present() && s.marker.Set == r.set {
		news = r.learn(s, now) || news
	}
	r.tokenRead(s, token)
	if r.lapse(s, now); news && s.read || s.isStale() {
		r.changed() // if it is stale, the next answer must be judged again
	}
	r.meets(p, s)
}

// jumped records that a master's clock has jumped forward. That holds for all its databases, also
// those that are just being dialled. A jump that is not written down yet keeps its time.
func (r *Roster) jumped(master int, by Jump, now time.Time) {
	for p, s := range r.views {
		if p.Master != master {
			continue
		}
		if s.jump == 0 {
			s.jumpedAt = now
		}
		s.read = s.read && !s.absent() // this process may have stood still: as in hasLapsed
		s.jump += by.Least
		s.last, s.lastAt = by, now
		s.actedAt = time.Time{}
	}
	r.changed()
}

// Noted: this is the standing of a connected place now, as Standing.At says, or as other findings do.
type Noted struct {
	Place
	Standing
}

func (e Noted) happen(r *Roster, now time.Time) {
	s := r.view(e.Place)
	if !s.connected {
		return
	}
	// If Since is later than the master's clock, that was ahead and has been set right. Then Since must be
	// written anew. Otherwise the quarantine would last as long as the step.
	if e.State == Quarantined && s.present() && !s.ahead && e.Until.Sub(now) > s.marker.Quarantine {
		s.ahead = true
		r.changed()
	}
	r.stands(e.Place, s, e.Standing, now)
}

// Replicates: this is what a server says about its replication, on a place's connection.
type Replicates struct {
	Place
	Replication
}

func (e Replicates) happen(r *Roster, now time.Time) {
	if s := r.view(e.Place); s.Replication != e.Replication {
		s.Replication, s.actedAt = e.Replication, time.Time{}
		// rule: a replica for a moment has just forgotten
		s.since = now // it may have forgotten until now
		r.changed()
	}
}

// Evicts: this is the policy by which a master may delete locks, or "" if it deletes none.
type Evicts struct {
	Master int
	Policy string
}

func (e Evicts) happen(r *Roster, now time.Time) {
	m := r.of(e.Master)
	if m.eviction == e.Policy {
		return
	}
	if e.Policy == "" {
		m.evicted = true
		r.view(Place{e.Master, 0}).since = now // it may have forgotten until now
	}
	m.eviction = e.Policy
	r.changed()
}

// Wrote: a write was made. Its jump is then written down for all databases, unless another one came on top of it.
type Wrote struct{ Write }

func (e Wrote) happen(r *Roster, now time.Time) {
	if e.jump > 0 {
		r.rewrites(e.Place, now)
	}
	for p, s := range r.views {
		if p.Master == e.Master && e.jump > 0 && s.jump == e.jump {
			s.jump = 0
			r.changed()
		}
	}
}

// Listed: this process's list has a server at a place. What was seen of another one there is forgotten.
type Listed struct {
	Master int
	Server
}

func (e Listed) happen(r *Roster, _ time.Time) {
	if e.Master == len(r.servers) {
		r.servers = append(r.servers, Server{})
	}
	if r.servers[e.Master].Name != e.Name {
		delete(r.all, e.Master)
		maps.DeleteFunc(r.views, func(p Place, _ *view) bool { return p.Master == e.Master })
		maps.DeleteFunc(r.outrun, func(p Place, _ bool) bool { return p.Master == e.Master })
	}
	r.servers[e.Master] = e.Server
	r.changed()
}

package roster

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/datatest"
	named "redlock-proxy/integration/fault"
	"redlock-proxy/redlock/marker"
)

// Scripts in testdata/*.txt show what rosters do. The events are:
//
//	masters 3 [moves]    toy masters a, b, c, ...
//	at 1.5s              the time since the script began
//	p starts [fresh]     a process with its roster
//	p connects 2         to the server in a place, and reads its marker
//	p loses 2            its connection to a place
//	p reads 2            the marker in a place, or in every place: all
//	p plans              the writes that it plans, which are then made
//	p sees 2 jump 1h     a jump of a server's clock
//	p replaces 2 by x    what a reload does first
//	2 restarts [empty]   and what else happens to a server: saves, restarts with what
//	                     it saved, is flushed, jumps 1m,
//	                     is replaced by x, is promoted by x (with its marker),
//	                     records 5m (a longer TTL, for a ballot),
//	                     belongs to a later version (which has written its marker),
//	                     belongs to an earlier version (and has an old marker),
//	                     belongs to this version (and has its marker again)
//	p adds d             what a reload with one master more does first
//	p removes 4          what a reload with one master less does
//	p stands             the state of the masters as it sees them
//	p pauses             until its next line; the others go on to look for missing markers

func TestScripts(t *testing.T) {
	datatest.Play(t, "testdata/*.txt", func(t *testing.T, told *datatest.Script) {
		s := &script{Script: told, world: newWorld(1, nil), procs: map[string]*actor{}}
		for event := range told.Events {
			s.do(strings.Fields(event))
		}
	})
}

// A script is played on toy servers that answer at once.
type script struct {
	*datatest.Script
	*world
	moves bool
	procs map[string]*actor
}

// An actor is a process of a script.
type actor struct {
	name    string
	r       *Roster
	servers map[int]*toyServer // the servers that it is connected to, by place
	runs    map[int]string
	paused  bool // until its next line
}

var scriptLimits = Limits{MasterTimeout: time.Second, ClockDrift: 0.01, RestartDelay: 30 * time.Second, MaxQuarantine: 10 * time.Minute}

func (s *script) time() time.Time { return worldBegan.Add(s.now) }

func (s *script) do(words []string) {
	switch words[0] {
	case "masters":
		s.begin(words)
	case "at":
		now, _ := time.ParseDuration(words[1])
		for s.now < now {
			s.now = min(now, s.now+BeatPause)
			s.looksAgain()
		}
	default:
		if n, err := strconv.Atoi(words[0]); err == nil {
			s.happens(s.at[n-1], words[1:])
			return
		}
		s.acts(words[0], words[1:])
	}
}

// looksAgain has each process see that markers are still missing.
func (s *script) looksAgain() {
	for _, p := range s.procs {
		for place := range s.at {
			m, v := p.servers[place], p.r.views[Place{place, 0}]
			switch {
			case p.paused || m == nil || v == nil || m.texts[0] != "" || m.run != p.runs[place]:
			case v.absent():
				p.r.Step(Asked{Place{place, 0}, s.time(), 0}, s.time())
			case v.text == "" && !v.since.IsZero(): // what it read before counts no more
				s.reads(p, place)
			}
		}
	}
}

func (s *script) begin(words []string) {
	n, _ := strconv.Atoi(words[1])
	s.moves, s.at = slices.Contains(words, "moves"), nil
	for i := range n {
		m := &toyServer{place: i, name: string(rune('a' + i)), texts: make([]string, 1), memory: make([]int, 1), forgot: make([]time.Duration, 1)}
		m.start()
		s.at = append(s.at, m)
	}
}

func (s *script) happens(m *toyServer, words []string) {
	switch what := strings.Join(words, " "); {
	case what == "restarts":
		m.start()
	case what == "restarts empty":
		m.start()
		clear(m.texts)
	case what == "saves":
		m.saved = slices.Clone(m.texts)
	case what == "restarts with what it saved":
		m.start()
		m.texts = slices.Clone(m.saved)
	case what == "is flushed":
		clear(m.texts)
	case what == "belongs to a later version":
		m.texts[0] = strings.Replace(m.texts[0], marker.Version, "redlock-proxy/9", 1)
	case what == "belongs to an earlier version":
		m.texts[0] = strings.Replace(m.texts[0], marker.Version, "redlock-proxy/3", 1)
	case what == "belongs to this version":
		m.texts[0] = strings.Replace(m.texts[0], "redlock-proxy/9", marker.Version, 1)
	case words[0] == "records":
		ttl, _ := time.ParseDuration(words[1])
		m.raise(0, ttl)
	case words[0] == "jumps":
		by, _ := time.ParseDuration(words[1])
		m.ahead += by
	case strings.HasPrefix(what, "is replaced by "):
		n := &toyServer{place: m.place, name: words[3], texts: make([]string, 1), memory: make([]int, 1), forgot: make([]time.Duration, 1)}
		n.start()
		s.at[m.place] = n
	case strings.HasPrefix(what, "is promoted by "):
		m.saved = m.texts
		s.at[m.place] = m.promote(s.world, words[3])
	default:
		s.Printf("what is that?")
	}
}

func (s *script) acts(name string, words []string) {
	p := s.procs[name]
	place := -1
	if len(words) > 1 {
		n, _ := strconv.Atoi(words[1])
		place = n - 1
	}
	if p != nil {
		p.paused = words[0] == named.Pause+"s"
	}
	switch {
	case words[0] == "starts":
		var servers []Server
		for _, m := range s.at {
			servers = append(servers, Server{Name: m.name, Moves: s.moves})
		}
		p = &actor{name: name, r: New(servers, slices.Contains(words, "fresh"), 0), servers: map[int]*toyServer{}, runs: map[int]string{}}
		s.procs[name] = p
		for i := range s.at {
			s.connects(p, i)
			s.reads(p, i)
		}
	case words[0] == "connects":
		s.connects(p, place)
		s.reads(p, place)
	case words[0] == "loses":
		delete(p.servers, place)
		p.r.Step(Disconnected{Place{place, 0}, NotConnected}, s.time())
	case words[0] == "reads" && words[1] == "all":
		for i := range s.at {
			s.reads(p, i)
		}
	case words[0] == "reads":
		s.reads(p, place)
	case words[0] == "sees":
		by, _ := time.ParseDuration(words[3])
		p.r.jumped(place, Jump{by, by}, s.time())
		s.reads(p, place)
	case words[0] == "plans":
		s.plans(p)
	case words[0] == "replaces":
		j, err := p.r.Propose(Change{Master: place, Name: words[3], Run: s.at[place].run}, s.time())
		if err != nil {
			s.Printf("%v", err)
			break
		}
		s.Printf("epoch %d joined %s", j.Epoch, strings.Join(j.members, ","))
		p.r.Step(Listed{place, Server{Name: words[3]}}, s.time())
	case words[0] == "adds":
		m := &toyServer{place: len(s.at), name: words[1], texts: make([]string, 1), memory: make([]int, 1), forgot: make([]time.Duration, 1)}
		m.start()
		j, err := p.r.Propose(Change{Master: m.place, Name: m.name, Run: m.run}, s.time())
		if err != nil {
			s.Printf("%v", err)
			break
		}
		s.Printf("epoch %d joined %s", j.Epoch, strings.Join(j.members, ","))
		s.at = append(s.at, m)
		p.r.Step(Listed{m.place, Server{Name: m.name}}, s.time())
	case words[0] == "removes":
		j, err := p.r.Propose(Change{Master: place}, s.time())
		if err != nil {
			s.Printf("%v", err)
			break
		}
		s.Printf("epoch %d joined %s", j.Epoch, strings.Join(j.members, ","))
		delete(p.servers, place)
		p.r.Step(Disconnected{Place{place, 0}, NotConnected}, s.time())
	case p.paused:
		return
	case words[0] == "stands":
	default:
		s.Printf("what is that?")
	}
	s.tells(p)
	if words[0] == "stands" {
		status := p.r.Status(s.time())
		for _, m := range status.Masters {
			s.Printf("%s %v%s", m.Name, m.State, s.because(m.Reason, m.Until))
		}
		if !status.NextChange.IsZero() {
			tell := ""
			if status.TellAll {
				tell = ", and every process must have the new list"
			}
			s.Printf("%d of %d are needed; the next change may come at %v%s", status.Needed, len(status.Masters), status.NextChange.Sub(worldBegan), tell)
		}
	}
}

// because formats a reason and its end, in the script's time.
func (s *script) because(reason string, until time.Time) string {
	if reason != "" {
		reason = ": " + reason
	}
	if !until.IsZero() {
		reason += fmt.Sprintf(", until %v", until.Sub(worldBegan))
	}
	return reason
}

func (s *script) connects(p *actor, place int) {
	m := s.at[place]
	p.servers[place], p.runs[place] = m, m.run
	p.r.Step(Connected{Place: Place{place, 0}, Run: m.run, Replication: m.repl}, s.time())
}

func (s *script) reads(p *actor, place int) {
	m := p.servers[place]
	if m == nil || p.runs[place] != m.run {
		return
	}
	at := Place{place, 0}
	st, marker := p.r.checked(at, m.texts[0], false, s.time(), s.time())
	st = st.At(marker, Reading{Clock: m.clock(s.world), Received: s.time(), Watched: time.Hour}, scriptLimits)
	p.r.Step(Noted{at, st}, s.time())
}

// plans makes the writes that a process plans.
func (s *script) plans(p *actor) {
	marks := p.r.Tick(s.time(), scriptLimits)
	s.tells(p)
	for _, m := range marks {
		kind := [...]string{"the marker", "the marker where it lacks", "all markers", "in all markers who the masters are"}[m.Kind]
		why := ""
		if m.Reason != "" {
			why = ": " + m.Reason
		}
		if m.Kind == EditAll {
			s.Printf("writes to %s %s: epoch=%d joined=%s%s", p.r.names(m.Master), kind, m.Marker.Epoch, strings.Join(m.Marker.Joined, ","), why)
		} else {
			s.Printf("writes to %s %s: run=%s since=%s quarantine=%v before=%v%s", p.r.names(m.Master), kind, m.Marker.Run, marker.WrittenTime(m.Marker.Since), m.Marker.Quarantine, m.Marker.Before, why)
		}
		server := p.servers[m.Master]
		if server == nil || p.runs[m.Master] != server.run || !server.write(s.world, m, math.MaxInt64) {
			s.Printf("which is not what is there any more")
			continue
		}
		s.reads(p, m.Master)
		p.r.Step(Wrote{m}, s.time())
		s.tells(p)
	}
}

// tells prints the notices of a process.
func (s *script) tells(p *actor) {
	for _, n := range p.r.Ready().Notices {
		if n.Standing != nil {
			s.Printf("%s is %v%s", n.Standing.Name, n.Standing.State, s.because(n.Standing.Reason, n.Standing.Until))
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

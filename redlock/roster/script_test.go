package roster

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/datatest"
	named "redlock-proxy/integration/fault"
	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/members"
)

// Scripts in testdata/*.txt show what rosters do. A process is called p or q. A place is a number, or
// 1.3 for another database. What happens to servers is in servers_test.go. The other events are:
//
//	masters 3 [moves]      toy masters a, b, c, ...
//	masters 3 voting       a set of them, and a process p that watches all places in databases 0 and 3
//	masters 1,1,1,2- voting  the same with this record, and [databases=N] of each server
//	at 1.5s                the time since the script began
//	after 1m               the time since the last event
//	p starts [fresh] [seed=7] [cut from 2 3]  a process with its roster
//	p uses 5               another database
//	p watches              reads all places after each event, each second, and says what has changed for it
//	p looks away           until it watches again
//	p forgets 1            which servers it has met
//	p connects 2           to the server in a place, and reads its marker
//	p dials 2              and has read no marker yet
//	p loses 2 [because WHY]  its connection to a place
//	p reads 2 [asked 1s ago]  the marker in a place, or in every place: all
//	p asks 2               whether the marker is as it was
//	p plans [only]         the writes that it plans, which are then made
//	p writes 1             those of its last plan for a master, now
//	p sees 2 jump 1h       a jump of a server's clock
//	p notes 1 WORD [until=1m] [longest=1h] [because WHY]  a state
//	p replaces 2 by x      what a reload does, by the server that is there now
//	p replaces 2 by x run=r  only what it does first
//	p adds d               what a reload with one master more does first
//	p removes 4            what a reload with one master less does
//	p lists 2 as x         what a reload does at its end
//	p stands               the state of the masters as it sees them
//	p expects 0 by 1m      the prospects of a database
//	p hears                what its roster has for its owner
//	survey [3] [without 2]  what an observer finds on so many servers
//	p pauses               until its next line; the others go on to look for missing markers
func TestScripts(t *testing.T) {
	datatest.Play(t, "testdata/*.txt", func(t *testing.T, told *datatest.Script) {
		s := &script{Script: told, world: newWorld(1, nil), dbs: 1}
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
	dbs   int
}

// An actor is a process of a script.
type actor struct {
	name    string
	r       *Roster
	servers map[Place]*toyServer // the servers that it is connected to
	runs    map[Place]string
	ahead   map[int]time.Duration // how far the clock of each master was ahead
	dbs     []int
	paused  bool              // until its next line
	shown   map[string]string // what was printed last for it; nil: only notices are
	watches bool
	planned []Write
	news    Ready  // not heard yet
	version uint64 // heard last
}

var scriptLimits = Limits{MasterTimeout: time.Second, ClockDrift: 0.01, RestartDelay: 30 * time.Second, MaxQuarantine: 10 * time.Minute}

func (s *script) time() time.Time { return worldBegan.Add(s.now) }

func (s *script) do(words []string) {
	until := func(now time.Duration) {
		for s.now < now {
			s.now = min(now, s.now+BeatPause)
			s.looksAgain()
		}
	}
	switch words[0] {
	case "masters":
		s.begin(words)
	case "at":
		until(datatest.Duration(words[1]))
	case "after":
		until(s.now + datatest.Duration(words[1]))
	case "survey":
		s.surveys(words[1:])
	default:
		if servers := s.serversAt(words[0]); servers != nil {
			for _, m := range servers {
				s.happens(m, placeOf(words[0]).DB, words[1:])
			}
			break
		}
		s.acts(words[0], words[1:])
	}
	for _, name := range slices.Sorted(maps.Keys(s.procs)) {
		s.shows(s.procs[name])
	}
}

// placeOf reads 2 or 2.3.
func placeOf(word string) Place {
	master, db, _ := strings.Cut(word, ".")
	n, err := strconv.Atoi(master)
	if err != nil {
		return Place{-1, 0}
	}
	at, _ := strconv.Atoi(db)
	return Place{n - 1, at}
}

// value returns what follows "name=" in a line.
func value(words []string, name, otherwise string) string {
	for _, word := range words {
		if text, ok := strings.CutPrefix(word, name+"="); ok {
			return text
		}
	}
	return otherwise
}

// serversAt returns the servers at 2, at 2-4, or at all places.
func (s *script) serversAt(word string) []*toyServer {
	first, last, isRange := strings.Cut(word, "-")
	from, to := placeOf(first).Master, placeOf(last).Master
	switch {
	case word == "all":
		return s.at
	case from < 0:
		return nil
	case isRange:
		return s.at[from : to+1]
	}
	return s.at[from : from+1]
}

// looksAgain has each process see that markers are still missing, or see all of them.
func (s *script) looksAgain() {
	for _, p := range s.procs {
		if p.watches {
			s.looks(p)
			continue
		}
		for at, m := range p.servers {
			v := p.r.views[at]
			switch {
			case p.paused || p.shown != nil || v == nil || m.texts[at.DB] != "" || m.run != p.runs[at]:
			case v.absent():
				p.r.Step(Asked{at, s.time(), 0}, s.time())
			case v.text == "" && !v.since.IsZero(): // what it read before counts no more
				s.reads(p, at, 0)
			}
		}
	}
}

func (s *script) begin(words []string) {
	n, err := strconv.Atoi(words[1])
	record := members.New(n)
	if err != nil {
		record = strings.Split(words[1], ",")
	}
	s.dbs, _ = strconv.Atoi(value(words, "databases", "16"))
	s.moves, s.at, s.procs = slices.Contains(words, "moves"), nil, map[string]*actor{}
	for i := range record {
		s.at = append(s.at, newToy(i, string(rune('a'+i)), s.dbs))
	}
	if !slices.Contains(words, "voting") {
		return
	}
	epoch := int64(1)
	for _, who := range record {
		epoch = max(epoch, members.Read(who).Epoch)
	}
	for i, m := range s.at {
		for db := range m.texts {
			own := marker.Marker{DB: db, Set: "s", Member: i + 1, Members: len(record), Epoch: epoch, Joined: record, Run: m.run}
			m.texts[db] = own.String()
		}
	}
	s.now = -time.Hour
	p := s.starts("p", words)
	s.uses(p, 3)
	for range 2 {
		s.looks(p)
		p.r.Tick(s.time(), scriptLimits)
	}
	s.now = 0
	p.watches = true
	s.looks(p)
	p.r.Tick(s.time(), scriptLimits)
	p.r.Ready()
	p.shown = s.sees(p)
}

// starts begins a process, which is connected to all servers but those that it is cut from.
func (s *script) starts(name string, words []string) *actor {
	var servers []Server
	for _, m := range s.at {
		servers = append(servers, Server{Name: m.name, Moves: s.moves})
	}
	seed, _ := strconv.Atoi(value(words, "seed", "0"))
	p := &actor{name: name, r: New(servers, slices.Contains(words, "fresh"), uint64(seed)), servers: map[Place]*toyServer{}, runs: map[Place]string{}, ahead: map[int]time.Duration{}, dbs: []int{0}}
	s.procs[name] = p
	cut := slices.Index(words, "cut")
	for i := range s.at {
		if cut < 0 || !slices.Contains(words[cut:], strconv.Itoa(i+1)) {
			s.connects(p, Place{i, 0})
			s.reads(p, Place{i, 0}, 0)
		}
	}
	return p
}

// uses has a process connect to another database of each server that it reaches.
func (s *script) uses(p *actor, db int) {
	for i := range s.at {
		if p.servers[Place{i, 0}] != nil {
			s.connects(p, Place{i, db})
		}
	}
}

func (s *script) acts(name string, words []string) {
	p := s.procs[name]
	at, isAll := Place{-1, 0}, slices.Contains(words, "all")
	if len(words) > 1 {
		at = placeOf(words[1])
	}
	if p != nil {
		p.paused = words[0] == named.Pause+"s"
	}
	switch {
	case words[0] == "starts":
		p = s.starts(name, words)
	case p.paused:
		return
	case words[0] == "uses":
		db, _ := strconv.Atoi(words[1])
		s.uses(p, db)
	case words[0] == "watches":
		p.watches, p.shown = true, s.sees(p)
	case words[0] == "looks":
		p.watches = false
	case words[0] == "forgets":
		p.r.of(at.Master).met = ""
	case words[0] == "dials":
		s.connects(p, at)
	case words[0] == "connects":
		s.connects(p, at)
		if s.reads(p, at, 0); slices.Contains(words, "everywhere") {
			s.connects(p, Place{at.Master, 3})
			s.reads(p, Place{at.Master, 3}, 0)
		}
	case words[0] == "loses":
		s.loses(p, at, strings.Join(words[min(2, len(words)):], " "))
	case words[0] == "reads" || words[0] == "asks":
		ago := time.Duration(0)
		if i := slices.Index(words, "asked"); i > 0 {
			ago = datatest.Duration(words[i+1])
		}
		for i := range s.at {
			place := Place{i, at.DB}
			switch {
			case !isAll && i != at.Master:
			case words[0] == "asks":
				p.r.Step(Asked{place, s.time().Add(-ago), 0}, s.time())
			default:
				s.reads(p, place, ago)
			}
		}
	case words[0] == "sees":
		by := datatest.Duration(words[3])
		p.r.jumped(at.Master, Jump{by, by}, s.time())
		if p.shown == nil {
			s.reads(p, at, 0)
		}
	case words[0] == "notes":
		s.notes(p, at, words[2:])
	case words[0] == "plans":
		s.plans(p, slices.Contains(words, "only"))
	case words[0] == "writes":
		s.writes(p, slices.DeleteFunc(slices.Clone(p.planned), func(w Write) bool { return w.Master != at.Master }))
	case words[0] == "replaces":
		c := Change{Master: at.Master, Name: words[3]}
		if at.Master < len(s.at) {
			c.Run, c.Marker = s.at[at.Master].run, s.at[at.Master].texts[0]
		}
		only := slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(word, "run=") })
		if c.Run = value(words, "run", c.Run); only {
			c.Marker = ""
		}
		if s.proposes(p, c) && !only {
			s.lists(p, at.Master, Server{Name: words[3]})
		}
	case words[0] == "adds":
		s.adds(p, words[1])
	case words[0] == "removes":
		if s.proposes(p, Change{Master: at.Master}) {
			s.loses(p, at, "")
		}
	case words[0] == "lists":
		s.lists(p, at.Master, Server{Name: words[3], Moves: s.moves})
	case words[0] == "stands":
		s.tells(p)
		s.stands(p, p.r.Status(s.time()))
	case words[0] == "expects":
		db, _ := strconv.Atoi(words[1])
		is := p.r.Prospects(db, s.time().Add(datatest.Duration(words[3])), s.time())
		s.Printf("voting %s, quarantined %s until %s, hopeful %s, arriving %s, moved at %s", p.letters(is.Voting), p.letters(is.Quarantined), s.clockTime(is.Until), p.letters(is.Hopeful), p.letters(is.Arriving), s.clockTime(is.Moved))
	case words[0] == "hears":
		s.tells(p)
		s.Printf("turned: %v, changed: %v, to be judged again: %v, unsettled: %v, learned at %s", p.news.Turned, p.news.Changed, p.r.version > p.version, p.r.unsettled, s.clockTime(p.r.learned))
		p.news, p.version = Ready{}, p.r.version
	default:
		s.Printf("what is that?")
	}
	s.tells(p)
}

func (s *script) proposes(p *actor, c Change) bool {
	j, err := p.r.Propose(c, s.time())
	if err != nil {
		s.Printf("%v", err)
		return false
	}
	s.Printf("epoch %d joined %s", j.Epoch, strings.Join(j.members, ","))
	return true
}

// lists has a process list a server. It has no connection to another one in its place.
func (s *script) lists(p *actor, master int, server Server) {
	if p.r.names(master) != server.Name {
		maps.DeleteFunc(p.servers, func(at Place, _ *toyServer) bool { return at.Master == master })
	}
	p.r.Step(Listed{master, server}, s.time())
}

func (s *script) adds(p *actor, name string) {
	m := newToy(p.r.masters, name, s.dbs)
	if !s.proposes(p, Change{Master: m.place, Name: m.name, Run: m.run}) {
		return
	}
	s.at = append(s.at[:m.place], m)
	s.lists(p, m.place, Server{Name: m.name})
}

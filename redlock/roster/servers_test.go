package roster

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/redlock/marker"
)

// The servers of a script, and what processes see of them.

// happens has something happen to a server, or to one of its databases:
//
//	restarts, restarts empty, saves, restarts with what it saved, is flushed
//	has set=t member=2 joined=1,1,2@x since=-1m quarantine=5m longest=1m before=1m db=5 token=7 run=x
//	                      other fields in its marker
//	has "TEXT"            another text in its key, or no text: a list
//	jumps 1m              its clock
//	is replaced by x, is promoted by x (with its marker)
//	records 5m            a longer TTL, for a ballot
//	swaps 0 5             SWAPDB
//	replicates x [was]    it has another replication id
//	hides its run, is the server of 1 (one server under two names)
//	evicts POLICY, is a replica, is a Sentinel
//	belongs to a later version, an earlier version, this version: its marker does
func (s *script) happens(m *toyServer, db int, words []string) {
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
	case what == "is flushed" && db > 0:
		m.texts[db] = ""
	case what == "is flushed":
		clear(m.texts)
	case what == "belongs to a later version":
		m.texts[0] = strings.Replace(m.texts[0], marker.Version, "redlock-proxy/9", 1)
	case what == "belongs to an earlier version":
		m.texts[0] = strings.Replace(m.texts[0], marker.Version, "redlock-proxy/3", 1)
	case what == "belongs to this version":
		m.texts[0] = strings.Replace(m.texts[0], "redlock-proxy/9", marker.Version, 1)
	case what == "is a replica" || what == "is a master":
		m.repl.Replica = what == "is a replica"
	case what == "is a Sentinel":
		m.problem = "it is a Sentinel"
	case what == "hides its run":
		m.run = ""
	case strings.HasPrefix(what, "is the server of "):
		s.at[m.place] = s.at[placeOf(words[4]).Master]
	case words[0] == "has":
		s.edits(m, db, words[1:])
	case words[0] == "evicts":
		for _, p := range s.procs {
			p.r.Step(Evicts{m.place, strings.Replace(words[1], "nothing", "", 1)}, s.time())
		}
	case words[0] == "replicates":
		m.repl.ID, m.repl.Was = words[1], len(words) > 2
	case words[0] == "swaps":
		one, other := placeOf("1."+words[1]).DB, placeOf("1."+words[2]).DB
		m.swap(one, other)
	case words[0] == "records":
		m.raise(db, datatest.Duration(words[1]))
	case words[0] == "jumps":
		m.ahead += datatest.Duration(words[1])
	case strings.HasPrefix(what, "is replaced by "):
		s.at[m.place] = newToy(m.place, words[3], s.dbs)
	case strings.HasPrefix(what, "is promoted by "):
		m.saved = m.texts
		s.at[m.place] = m.promote(s.world, words[3])
	default:
		s.Printf("what is that?")
	}
}

// edits changes fields of a marker. One that is missing gets the fields that it would have in the set s.
func (s *script) edits(m *toyServer, db int, words []string) {
	if text, isText := strings.CutPrefix(strings.Join(words, " "), `"`); isText {
		m.texts[db] = strings.TrimSuffix(text, `"`)
		return
	}
	own, ok := marker.Parse(m.texts[db])
	if !ok {
		own = marker.Marker{DB: db, Set: "s", Member: m.place + 1, Epoch: 1, Joined: slices.Repeat([]string{"1"}, len(s.at)), Run: m.run}
	}
	number := func(text string) int64 { n, _ := strconv.ParseInt(text, 10, 64); return n }
	for _, word := range words {
		name, text, _ := strings.Cut(word, "=")
		switch name {
		case "set":
			own.Set = text
		case "member":
			own.Member = int(number(text))
		case "joined":
			own.Joined = strings.Split(text, ",")
		case "epoch":
			own.Epoch = number(text)
		case "run":
			own.Run = text
		case "since":
			own.Since = (m.clock(s.world) + datatest.Duration(text)).Milliseconds()
		case "quarantine":
			own.Quarantine = datatest.Duration(text)
		case "longest":
			own.Longest = datatest.Duration(text)
		case "before":
			own.Before = datatest.Duration(text)
		case "db":
			own.DB = int(number(text))
		case "turned":
			own.Turned = (m.clock(s.world) + datatest.Duration(text)).Milliseconds()
		case "token":
			own.Token = number(text)
		default:
			s.Printf("what is %s?", name)
		}
	}
	own.Members = max(len(own.Joined), own.Member)
	m.texts[db] = own.String()
}

func (s *script) connects(p *actor, at Place) {
	m := s.at[at.Master]
	if !slices.Contains(p.dbs, at.DB) {
		p.dbs = append(p.dbs, at.DB)
	}
	p.servers[at], p.runs[at], p.ahead[at.Master] = m, m.run, m.ahead
	p.r.Step(Connected{Place: at, Run: m.run, Problem: m.problem, Replication: m.repl}, s.time())
}

func (s *script) loses(p *actor, at Place, why string) {
	delete(p.servers, at)
	p.r.Step(Disconnected{at, strings.TrimSpace(NotConnected + " " + why)}, s.time())
}

func (s *script) reads(p *actor, at Place, ago time.Duration) {
	m := p.servers[at]
	if m == nil || p.runs[at] != m.run {
		return
	}
	var jump Jump
	if p.shown != nil {
		if by := m.ahead - p.ahead[at.Master]; by > 0 {
			jump = Jump{by, by}
		}
		p.ahead[at.Master] = m.ahead
		p.r.Step(Replicates{at, m.repl}, s.time())
	}
	text, broken := m.texts[at.DB], m.texts[at.DB] == "a list"
	if broken {
		text = ""
	}
	p.r.Step(Checked{Place: at, Text: text, Broken: broken, Asked: s.time().Add(-ago), Jump: jump}, s.time())
	st, marker := p.r.Judge(at)
	p.r.Step(Noted{at, st.At(marker, Reading{Clock: m.clock(s.world), Received: s.time(), Watched: time.Hour}, scriptLimits)}, s.time())
}

// looks has a process read all places until it has no news. It connects to servers that began another run.
func (s *script) looks(p *actor) {
	for range 5 {
		version := p.r.version
		for _, db := range p.dbs {
			for i, m := range s.at {
				at := Place{i, db}
				if p.servers[at] != nil && (p.servers[at] != m || p.runs[at] != m.run) {
					s.loses(p, at, "")
					s.connects(p, at)
				}
				s.reads(p, at, 0)
			}
		}
		if p.r.version == version {
			return
		}
	}
}

func (s *script) notes(p *actor, at Place, words []string) {
	st := Standing{Longest: datatest.Duration(value(words, "longest", "0s"))}
	for state := Unreachable; state <= Rejected; state++ {
		if state.String() == words[0] {
			st.State = state
		}
	}
	if until := value(words, "until", ""); until != "" {
		st.Until = worldBegan.Add(datatest.Duration(until))
	}
	if i := slices.Index(words, "because"); i > 0 {
		st.Reason = strings.Join(words[i+1:], " ")
	}
	p.r.Step(Noted{at, st}, s.time())
}

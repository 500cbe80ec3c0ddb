package redlock

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/integration/fault"
	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/rdb"
	"redlock-proxy/redlock/toymaster"
)

// What happens to masters and links. The names of faults are those of package fault.

// addMasters makes masters that no Locker has seen.
func (w *timeline) addMasters(n int) {
	for i := range n {
		m := newMaster(fmt.Sprintf("m%d", i+1))
		m.Watch = w.note
		w.masters = append(w.masters, m)
	}
}

var serverName = regexp.MustCompile(`^(m\d+|all)$`)

func (s *stage) isServer(word string) bool { return serverName.MatchString(word) }

// server returns a server by its name. One that nobody named before is empty.
func (s *stage) server(name string) *toymaster.Master {
	m := s.servers[name]
	if m == nil {
		m = newMaster(name)
		m.Watch = s.note
		s.servers[name] = m
	}
	return m
}

// text is what a master holds under the key, a hash as hash:FIELDSANDVALUES.
func text(m *toymaster.Master) string {
	v := m.Value(key)
	if hash := rdb.Read([]byte(v)); hash.Kind == rdb.Hash {
		return "hash:" + string(slices.Concat(hash.Items...))
	}
	return v
}

// atMasters plays an event at masters.
func (s *stage) atMasters(words []string) {
	var at []*toymaster.Master
	for ; s.isServer(words[0]); words = words[1:] {
		if words[0] == "all" {
			at = s.masters
		} else {
			at = append(at, s.server(words[0]))
		}
	}
	for _, m := range at {
		s.atMaster(m, words[0], words[1:])
	}
}

func (s *stage) atMaster(m *toymaster.Master, verb string, words []string) {
	word := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	restart := func(remembers bool) {
		if !m.Away {
			m.Kill()
		}
		m.Restart(remembers)
	}
	switch verb {
	case fault.Kill:
		m.Kill()
	case fault.Restart:
		restart(true)
	case fault.Forget:
		restart(false)
	case fault.Pause:
		m.Pause()
	case "resume": // [newest first, each older session D later]
		if word(0) != "" {
			m.ResumeNewestFirst(datatest.Duration(word(0)))
		} else {
			m.Resume()
		}
	case fault.Flush: // [DB]
		if word(0) != "" {
			delete(m.DBs, atoi(word(0)))
		} else {
			m.Flush()
		}
	case fault.Jump:
		m.Jump(datatest.Duration(word(0)))
	case fault.Refuse:
		m.Refuse(strings.Join(words, " "))
	case "serve":
		m.Refuse("")
	case "hold": // VALUE [for TTL] [in DB]
		values, ttl := cutTTL(words)
		m.Put(key, meant(values[0]), ttl)
	case "list": // the key is a list
		m.Store(0, []byte(key), toymaster.Entry{Value: meant(word(0)), IsList: true})
	case "hash": // with fields and values of one letter each
		v := rdb.Value{Kind: rdb.Hash}
		for pair := range slices.Chunk([]byte(word(0)), 2) {
			v.Items = append(v.Items, pair[:1], pair[1:])
		}
		m.Store(0, []byte(key), toymaster.Entry{Value: string(rdb.Dump(v)), Packed: true})
	case "lose": // [DB]
		delete(m.DBs[atoi("0"+word(0))], key)
	case "swap": // DB DB
		one, other := atoi(word(0)), atoi(word(1))
		m.DBs[one], m.DBs[other] = m.DBs[other], m.DBs[one]
	case "databases":
		m.Databases = atoi(word(0))
	case "marker":
		s.mark(m, words)
	case "lack": // scripts
		clear(m.Scripts)
	case "misread":
		m.Misreads(datatest.Duration(word(0)))
	case "evict":
		m.Configure(word(0))
	case "copy": // what it holds now, for the time when it becomes a master again
		s.kept[m.Name] = m.Copied()
	case "replica":
		m.BecomeReplica()
	case "master":
		if s.kept[m.Name] == nil {
			s.kept[m.Name] = m.Copied()
		}
		m.BecomeMaster(s.kept[m.Name])
		delete(s.kept, m.Name)
	case "likewise": // it has all that another server has
		m.DBs = s.server(word(0)).Copied()
	case "replid":
		m.Replid[0] = word(0) + m.Name
	case "deny":
		m.NoRole, m.Deaf = m.NoRole || word(0) == "ROLE", m.Deaf || word(0) == "SUBSCRIBE"
	case "allow":
		m.NoRole, m.Deaf = m.NoRole && word(0) != "ROLE", m.Deaf && word(0) != "SUBSCRIBE"
	case "backlog":
		m.Backlog, m.Offset = true, 14
	case "publish":
		m.Publish("chan", word(0))
	case "invalidate":
		m.Invalidate(words...)
	case "say":
		text, err := strconv.Unquote(strings.Join(words, " "))
		if err != nil {
			s.t.Fatal(err)
		}
		m.Say(text)
	case "end": // the connections that listen
		m.EndListeners()
	default:
		s.t.Fatalf("no master does %q", verb)
	}
}

// mark gives a master another marker: of another set, of m2, what was kept before, or any other word.
func (s *stage) mark(m *toymaster.Master, words []string) {
	text := words[0]
	switch text {
	case "another":
		text = marker.Marker{Set: "another", Member: 3, Members: 5, Epoch: 1, Joined: []string{"1", "1", "1", "1", "1"}, Run: m.Name + "-run-1"}.String()
	case "of":
		text = s.server(words[1]).Value(marker.Key)
	case "keep": // for the time when it is put back
		s.marker = m.Value(marker.Key)
		return
	case "back":
		text = s.marker
	case "token": // +N adds to the token on record, and another number is the token
		was, token := marker.CutToken(m.Value(marker.Key))
		if n := atoi(words[1]); strings.HasPrefix(words[1], "+") {
			token += int64(n)
		} else {
			token = int64(n)
		}
		text = fmt.Sprintf("%s token=%d", was, token)
	}
	m.Put(marker.Key, text, 0)
}

// atLinks plays an event at links. A link may have a fate: lost@5ms or cut@5ms for the next question.
func (s *stage) atLinks(words []string) {
	var at []*toymaster.Link
	for ; strings.Contains(words[0], "-"); words = words[1:] {
		at = append(at, s.linkNames(words[0])...)
	}
	for _, k := range at {
		switch verb, d, _ := strings.Cut(words[0], "@"); verb {
		case fault.Mute:
			k.Mute()
		case "unmute":
			k.Unmute()
		case "abandon":
			k.Abandon()
		case fault.Slow: // D [JITTER]
			var jitter time.Duration
			if len(words) > 2 {
				jitter = datatest.Duration(words[2])
			}
			k.SetDelay(datatest.Duration(words[1]), jitter)
		case "answers": // take D
			k.ReplyDelay = datatest.Duration(words[1])
		case "lost":
			k.LoseQuestion(datatest.Duration(d))
		case fault.Cut:
			if d == "" {
				k.Cut()
			} else {
				k.LoseAnswer(datatest.Duration(d))
			}
		default:
			s.t.Fatalf("no link does %q", verb)
		}
	}
}

package redlock

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"redlock-proxy/integration/fault"
)

// What happens to masters and links. The names of faults are those of package fault.

// addMasters makes masters that no Locker has seen.
func (w *timeline) addMasters(n int) {
	for i := range n {
		m := newFakeMaster(fmt.Sprintf("m%d", i+1))
		m.watch = w.note
		w.masters = append(w.masters, m)
	}
}

var serverName = regexp.MustCompile(`^(m\d+|all)$`)

func (s *stage) isServer(word string) bool { return serverName.MatchString(word) }

// server returns a server by its name. One that nobody named before is empty.
func (s *stage) server(name string) *fakeMaster {
	m := s.servers[name]
	if m == nil {
		m = newFakeMaster(name)
		m.watch = s.note
		s.servers[name] = m
	}
	return m
}

// atMasters plays an event at masters.
func (s *stage) atMasters(words []string) {
	var at []*fakeMaster
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

func (s *stage) atMaster(m *fakeMaster, verb string, words []string) {
	word := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	restart := func(remembers bool) {
		if !m.away {
			m.kill()
		}
		m.restart(remembers)
	}
	switch verb {
	case fault.Kill:
		m.kill()
	case fault.Restart:
		restart(true)
	case fault.Forget:
		restart(false)
	case fault.Pause:
		m.pause()
	case "resume": // [newest first, each older session D later]
		if word(0) != "" {
			m.resumeNewestFirst(duration(word(0)))
		} else {
			m.resume()
		}
	case fault.Flush: // [DB]
		if word(0) != "" {
			delete(m.dbs, atoi(word(0)))
		} else {
			m.flush()
		}
	case fault.Jump:
		m.jump(duration(word(0)))
	case fault.Refuse:
		m.refuse(strings.Join(words, " "))
	case "serve":
		m.refuse("")
	case "hold": // VALUE [for TTL] [in DB]
		values, ttl := cutTTL(words)
		m.put(key, meant(values[0]), ttl)
	case "list": // the key is a list
		m.store(0, []byte(key), entry{value: meant(word(0)), isList: true})
	case "lose": // [DB]
		delete(m.dbs[atoi("0"+word(0))], key)
	case "swap": // DB DB
		one, other := atoi(word(0)), atoi(word(1))
		m.dbs[one], m.dbs[other] = m.dbs[other], m.dbs[one]
	case "databases":
		m.databases = atoi(word(0))
	case "lack": // scripts
		clear(m.scripts)
	case "misread":
		m.misreads(duration(word(0)))
	case "evict":
		m.configure(word(0))
	case "copy": // what it holds now, for the time when it becomes a master again
		s.kept[m.name] = m.copied()
	case "replica":
		m.becomeReplica()
	case "master":
		if s.kept[m.name] == nil {
			s.kept[m.name] = m.copied()
		}
		m.becomeMaster(s.kept[m.name])
		delete(s.kept, m.name)
	case "likewise": // it has all that another server has
		m.dbs = s.server(word(0)).copied()
	case "replid":
		m.replid[0] = word(0) + m.name
	case "deny":
		m.noRole, m.deaf = m.noRole || word(0) == "ROLE", m.deaf || word(0) == "SUBSCRIBE"
	case "allow":
		m.noRole, m.deaf = m.noRole && word(0) != "ROLE", m.deaf && word(0) != "SUBSCRIBE"
	case "backlog":
		m.backlog, m.offset = true, 14
	case "publish":
		m.publish("chan", word(0))
	case "invalidate":
		m.invalidate(words...)
	case "say":
		text, err := strconv.Unquote(strings.Join(words, " "))
		if err != nil {
			s.t.Fatal(err)
		}
		m.say(text)
	case "end": // the connections that listen
		m.endListeners()
	default:
		s.t.Fatalf("no master does %q", verb)
	}
}

// atLinks plays an event at links. A link may have a fate: lost@5ms or cut@5ms for the next question.
func (s *stage) atLinks(words []string) {
	var at []*link
	for ; strings.Contains(words[0], "-"); words = words[1:] {
		at = append(at, s.linkNames(words[0])...)
	}
	for _, k := range at {
		switch verb, d, _ := strings.Cut(words[0], "@"); verb {
		case fault.Mute:
			k.mute()
		case "unmute":
			k.unmute()
		case "abandon":
			k.abandon()
		case fault.Slow: // D [JITTER]
			var jitter time.Duration
			if len(words) > 2 {
				jitter = duration(words[2])
			}
			k.setDelay(duration(words[1]), jitter)
		case "answers": // take D
			k.replyDelay = duration(words[1])
		case "lost":
			k.setFate(fate{questionLost, duration(d)})
		case fault.Cut:
			if d == "" {
				k.cut()
			} else {
				k.setFate(fate{answerLost, duration(d)})
			}
		default:
			s.t.Fatalf("no link does %q", verb)
		}
	}
}

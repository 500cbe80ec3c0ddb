package stage

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"redlock-proxy/integration/corpus"
	"redlock-proxy/integration/rig"
)

// client is an event of a client.
func (s *stage) client(name, event string) string {
	w := s.clients[name]
	if at, is := strings.CutPrefix(event, name+" at "); is {
		protocol := 2
		place, is3 := strings.CutSuffix(at, ", RESP3")
		if is3 {
			protocol = 3
		}
		s.clients[name] = s.connect(place, protocol)
		return ""
	}
	if w == nil {
		w = s.connect("p", 2)
		s.clients[name] = w
	}
	did, text, _ := strings.Cut(strings.TrimPrefix(event, name), ": ")
	switch strings.TrimSpace(did) {
	case "":
		var replies []string
		for command := range strings.SplitSeq(text, " | ") {
			replies = append(replies, s.ask(w, command))
		}
		return strings.Join(replies, "\n")
	case "and plain":
		reply := s.ask(w, text)
		if s.clients["plain"] == nil {
			s.clients["plain"] = s.connect("plain", 2)
		}
		if plain := s.ask(s.clients["plain"], text); plain != reply {
			s.t.Errorf("%s: the proxy answers %s, and a plain Redis %s", text, reply, plain)
		}
		return reply
	case "counts":
		reply := s.ask(w, text)
		words := strings.Fields(strings.Trim(reply, "[]"))
		n, err := strconv.Atoi(words[len(words)-1])
		if before := s.counted[name]; err != nil || n <= before {
			return fmt.Sprintf("%s after %d", reply, before)
		}
		s.counted[name] = n
		return "more"
	case "tries":
		return s.poll(func() []string { return []string{s.ask(w, text)} })
	case "sends":
		s.must(w.Send(rig.Encode(corpus.Words(text)...)))
	case "hears":
		return s.hear(w, len(s.script.Recorded()))
	case "leaves":
		w.Conn.Close()
		delete(s.clients, name)
	default:
		var n int
		if _, err := fmt.Sscanf(did, " hears %d", &n); err != nil {
			s.t.Fatal("nobody knows what to do at: ", event)
		}
		return s.hear(w, n)
	}
	return ""
}

// connect connects a client to a proxy or a server.
func (s *stage) connect(place string, protocol int) *rig.Wire {
	if p := s.proxies[place]; p != nil {
		return rig.Dial(s.t, p.Addr(), protocol)
	}
	return rig.Dial(s.t, s.server(place).Addr(), protocol)
}

// shortened are scripts that clients of locks send. A script of events names them.
var shortened = map[string]string{
	"$release": rig.CompareAndDeleteText,
	"$unlock":  rig.WakingUnlock,
	"$tracked": rig.TrackedLock,
	"$extend":  `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end`,
	"$signal":  `if redis.call('get', KEYS[1]) ~= ARGV[1] then return 1 end redis.call('del', KEYS[2]) redis.call('lpush', KEYS[2], 1) redis.call('pexpire', KEYS[2], 1000) redis.call('del', KEYS[1]) return 0`, // python-redis-lock's
	"$fenced":  corpus.HashFenced,
	"$hash":    corpus.HashLock,
	"$unhash":  corpus.HashUnlock,
}

func (s *stage) ask(w *rig.Wire, command string) string {
	words := corpus.Words(s.meant(command))
	for i, word := range words {
		if text, is := shortened[word]; is {
			words[i] = text
		}
	}
	reply, err := w.Do(words...)
	if err != nil {
		return "END"
	}
	return s.readable(say(reply))
}

// hear reads as many values. If it is not known how many are to come, it reads all that come soon.
func (s *stage) hear(w *rig.Wire, n int) string {
	var heard []string
	for open := n == 0; n > 0 || open; n-- {
		if open {
			_ = w.Conn.SetReadDeadline(time.Now().Add(3 * time.Second))
			if _, err := w.In.Peek(1); err != nil && strings.Contains(err.Error(), "timeout") {
				break
			}
		}
		raw, err := w.Read()
		if err != nil {
			heard = append(heard, "END")
			break
		}
		heard = append(heard, say(raw))
	}
	return strings.Join(heard, "\n")
}

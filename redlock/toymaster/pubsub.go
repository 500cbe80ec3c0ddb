package toymaster

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"redlock-proxy/redlock/resp"
)

// listens are the subscriptions of a session. master.mu guards them.
type listens struct {
	channels, patterns []string
	tracking           bool
}

func init() {
	change := func(name string, ends bool, list func(*Session) *[]string) {
		commands[strings.ToUpper(name)] = &command{2, noKeys, func(m *Master, s *Session, args [][]byte) []byte {
			if m.Deaf && !ends {
				return replyError("NOPERM this user has no permissions to access one of the channels used as arguments")
			}
			all, topic := list(s), string(args[1])
			*all = slices.DeleteFunc(*all, func(other string) bool { return other == topic })
			if !ends {
				*all = append(*all, topic)
			}
			return append(s.push(name, topic), ReplyInteger(int64(len(*all)))...)
		}}
	}
	channels := func(s *Session) *[]string { return &s.listens.channels }
	patterns := func(s *Session) *[]string { return &s.listens.patterns }
	change("subscribe", false, channels)
	change("unsubscribe", true, channels)
	change("psubscribe", false, patterns)
	change("punsubscribe", true, patterns)
	client := commands["CLIENT"].run
	commands["CLIENT"].run = func(m *Master, s *Session, args [][]byte) []byte {
		if !strings.EqualFold(string(args[1]), "TRACKING") {
			return client(m, s, args)
		}
		s.listens.tracking = string(args[2]) == "ON"
		return replyOK
	}
}

// push begins a push message with these words and one more element.
func (s *Session) push(words ...string) []byte {
	frame := resp.AppendArray(nil, len(words)+1)
	if s.resp3 {
		frame[0] = '>'
	}
	for _, word := range words {
		frame = resp.AppendBulk(frame, word)
	}
	return frame
}

// Publish publishes a message as a script on the master does.
func (m *Master) Publish(channel, payload string) {
	m.toListeners(func(s *Session) []byte {
		var out []byte
		if slices.Contains(s.listens.channels, channel) {
			out = resp.AppendBulk(s.push("message", channel), payload)
		}
		for _, p := range s.listens.patterns {
			if strings.HasPrefix(channel, strings.TrimSuffix(p, "*")) {
				out = append(out, resp.AppendBulk(s.push("pmessage", p, channel), payload)...)
			}
		}
		return out
	})
}

// Invalidate reports that keys changed. Without keys it reports that any may have.
func (m *Master) Invalidate(keys ...string) {
	m.toListeners(func(s *Session) []byte {
		if !s.listens.tracking {
			return nil
		}
		if len(keys) == 0 {
			return append(s.push("invalidate"), "_\r\n"...)
		}
		return append(s.push("invalidate"), resp.AppendCommand(nil, keys...)...)
	})
}

// Say sends bytes to a listener.
func (m *Master) Say(garbage string) {
	m.toListeners(func(s *Session) []byte { return []byte(garbage) })
}

func (m *Master) toListeners(frame func(*Session) []byte) {
	for _, s := range m.Listeners() {
		if out := frame(s); len(out) > 0 {
			s.conn.in.write(bytes.Clone(out), s.conn.Link.arrival(toProxy, time.Now()))
		}
	}
}

// Listeners returns the sessions with subscriptions. The caller holds mu.
func (m *Master) Listeners() []*Session {
	var list []*Session
	for _, s := range m.sessions {
		if s.listens.tracking || len(s.listens.channels)+len(s.listens.patterns) > 0 {
			list = append(list, s)
		}
	}
	return list
}

// Listening describes the listeners' subscriptions.
func (m *Master) Listening() string {
	var words []string
	for _, s := range m.Listeners() {
		words = append(words, s.listens.channels...)
		words = append(words, s.listens.patterns...)
		if s.listens.tracking {
			words = append(words, "changes")
		}
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

// EndListeners ends the listeners' connections, as CLIENT KILL TYPE pubsub does.
func (m *Master) EndListeners() {
	for _, s := range m.Listeners() {
		m.disconnect(s.ID)
	}
}

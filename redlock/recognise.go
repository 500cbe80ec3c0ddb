package redlock

import (
	"bytes"
	"strconv"
	"sync"
	"sync/atomic"

	"redlock-proxy/redlock/resp"
)

// A meaning is what is certain of a script from its text alone, whatever its
// words are. A wrong "not certain" merely costs time.
type meaning struct {
	tooFar     string    // why it is refused, an error reply; empty: it is not
	form       form      // what it does to its one lock
	key        word      // that lock...
	owner      word      // ...and the value it must have
	companions []word    // keys beside the lock that it writes while it releases
	done       replyForm // how it answers when it has done so, and never otherwise
	highest    [2]int    // the highest index of KEYS and of ARGV that it mentions
	// text is what the masters must know before its EVALSHA; set if it has a form.
	text []loadable
	// acquires: a run of it has acquired something. It is learned, and may be
	// forgotten at any time.
	acquires atomic.Bool
}

// form is an operation on one string key. It does nothing where the key does
// not hold the owner's value.
type form uint8

const (
	noForm form = iota
	formRelease
)

// replyForm is a script's answer: exact bytes, or the owner's value.
type replyForm struct {
	exact string
	owner bool
}

// meaningOf reads a script.
func meaningOf(text []byte) *meaning {
	m := &meaning{tooFar: reach(text)}
	if len(text) > maxRecognised {
		return m
	}
	tokens, ok := luaTokens(string(text))
	if !ok {
		return m
	}
	script, words, ok := parseScript(tokens)
	if !ok {
		return m
	}
	for _, w := range words {
		if !w.argv || !m.recognise(script, w) {
			continue
		}
		for _, w := range words {
			i := 0
			if w.argv {
				i = 1
			}
			m.highest[i] = max(m.highest[i], w.index)
		}
		m.text = []loadable{newLoadable(bytes.Clone(text))}
		break
	}
	return m
}

// recognise tries the script with each thing that its key may hold. It is
// recognised if it acts only where that is the owner's value.
func (m *meaning) recognise(script luaBlock, owner word) bool {
	var trials [allContents]*trial
	for holds := range allContents {
		t := script.try(owner, holds)
		if t.bad {
			return false
		}
		trials[holds] = t
	}
	mine := trials[holdsOwner]
	done, ok := mine.replyForm()
	if !ok {
		return false
	}
	for holds, t := range trials {
		if contents(holds) == holdsOwner {
			continue
		}
		if t.deleted || t.companions != nil || t.key != mine.key || !t.answersOtherThan(done) {
			return false
		}
	}
	if !mine.deleted {
		return false
	}
	m.form = formRelease
	m.key, m.owner, m.companions, m.done = mine.key, owner, mine.companions, done
	return true
}

// replyForm is the answer of a script that did its work; false if that is not
// certain, or an error.
func (t *trial) replyForm() (replyForm, bool) {
	switch v := t.answer; v.kind {
	case valueUndefined, valueNil, valueFalse: // nothing returned is nil
		return replyForm{exact: "$-1\r\n"}, true
	case valueTrue:
		return replyForm{exact: ":1\r\n"}, true
	case valueNumber:
		return replyForm{exact: ":" + strconv.FormatInt(v.number, 10) + "\r\n"}, true
	case valueText:
		return replyForm{exact: string(resp.AppendBulk(nil, v.text))}, true
	case valueStatus:
		return replyForm{exact: "+" + v.text + "\r\n"}, true
	case valueWord:
		return replyForm{owner: true}, v.word == t.owner
	}
	return replyForm{}, false
}

// answersOtherThan tells whether the script's answer certainly is not done.
func (t *trial) answersOtherThan(done replyForm) bool {
	if t.answer.kind == valueError {
		return true
	}
	bulk := done.owner || done.exact[0] == '$' && done.exact != "$-1\r\n"
	if t.answer.kind == valueAnother {
		return done.owner || !bulk
	}
	other, ok := t.replyForm()
	switch {
	case !ok || other.owner:
		return false
	case done.owner:
		return other.exact[0] != '$' || other.exact == "$-1\r\n"
	}
	return other.exact != done.exact
}

// recognised is a script that a client asks for, its words being known.
type recognised struct {
	*meaning
	form       form     // as it means, or none where the script has to be examined
	args       [][]byte // the client's command
	keys       int      // how many of its words are KEYS
	key, owner []byte
	answer     string     // of a master that has deleted it
	load       []loadable // what EVALSHA needs
}

// in fits a meaning to a client's EVAL or EVALSHA.
func (m *meaning) in(args [][]byte) recognised {
	r := recognised{meaning: m, args: args}
	if m.form == noForm {
		return r
	}
	var err error
	r.keys, err = strconv.Atoi(string(args[2]))
	if err != nil || r.keys < m.highest[0] || len(args)-3-r.keys < m.highest[1] {
		return r
	}
	r.key, r.owner = r.word(m.key), r.word(m.owner)
	for _, w := range m.companions {
		if bytes.Equal(r.word(w), r.key) {
			return r
		}
	}
	if r.answer = m.done.exact; m.done.owner {
		r.answer = string(resp.AppendBulk(nil, r.owner))
	}
	r.form = m.form
	return r
}

func (r *recognised) word(w word) []byte {
	if w.argv {
		return r.args[2+r.keys+w.index]
	}
	return r.args[2+w.index]
}

// scriptMeanings remembers what script texts mean, because reading a text
// takes longer than the rest of a run's own work, and what their runs did.
type scriptMeanings struct {
	mu    sync.RWMutex
	known map[string]*meaning
}

// maxKnownScripts bounds what is remembered; applications have a few scripts.
const maxKnownScripts = 1024

// maxKnownScript is how long a script may be whose meaning is remembered.
const maxKnownScript = 16 << 10

func (s *scriptMeanings) of(text []byte) *meaning {
	if len(text) > maxKnownScript {
		m := meaningOf(text)
		m.acquires.Store(true) // what it does is not remembered
		return m
	}
	s.mu.RLock()
	m, known := s.known[string(text)]
	s.mu.RUnlock()
	if known {
		return m
	}
	m = meaningOf(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= maxKnownScripts || s.known == nil {
		s.known = map[string]*meaning{}
	}
	s.known[string(text)] = m
	return m
}

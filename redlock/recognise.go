package redlock

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/script"
	"redlock-proxy/redlock/stream"
)

// A knownScript is what is known of a script: from its text, and from its runs.
type knownScript struct {
	tooFar  string            // why it is refused, an error reply; empty: it is not
	release *script.Release   // nil: it is none, or that is not certain
	text    []stream.Loadable // what the masters must know before its EVALSHA, if it is a release
	// acquires: a run of it has acquired something. It is learned, and may be
	// forgotten at any time.
	acquires atomic.Bool
}

func readScript(text []byte) *knownScript {
	k := &knownScript{}
	if refusal := script.Reach(text); refusal != "" {
		k.tooFar = "-ERR " + refusal + "\r\n"
	}
	if r, certain := script.Recognise(text); certain && !slices.ContainsFunc(r.Errors(), isMastersOwn) {
		k.release, k.text = r, []stream.Loadable{stream.NewLoadable(bytes.Clone(text))}
	}
	return k
}

// isMastersOwn tells whether an error reads as one by which a master says that it
// cannot serve, or does not know a script.
func isMastersOwn(text string) bool {
	reply := []byte("-" + text + "\r\n")
	return resp.CannotServe(reply) || resp.IsNoScript(reply)
}

// knownScripts remembers what is known of scripts, because reading a text takes
// longer than the rest of a run's own work.
type knownScripts struct {
	mu     sync.RWMutex
	byText map[string]*knownScript
}

// maxKnownScripts bounds what is remembered; applications have a few scripts.
const maxKnownScripts = 1024

// maxKnownScript is how long a script may be that is remembered.
const maxKnownScript = 16 << 10

func (s *knownScripts) of(text []byte) *knownScript {
	if len(text) > maxKnownScript {
		k := readScript(text)
		k.acquires.Store(true) // what it does is not remembered
		return k
	}
	s.mu.RLock()
	k, known := s.byText[string(text)]
	s.mu.RUnlock()
	if known {
		return k
	}
	k = readScript(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byText) >= maxKnownScripts || s.byText == nil {
		s.byText = map[string]*knownScript{}
	}
	s.byText[string(text)] = k
	return k
}

// known is what is known of the one script that the request runs; nil if there is
// none, or its text is not known.
func (l *Locker) known(r *RunRequest) *knownScript {
	text := r.scriptText()
	if text == nil {
		return nil
	}
	return l.scripts.of(text)
}

// tooFar is the error reply to a request one of whose scripts reaches too far.
func (l *Locker) tooFar(r *RunRequest) string {
	for _, text := range r.Scripts {
		if refusal := l.scripts.of(text).tooFar; refusal != "" {
			return refusal
		}
	}
	for _, command := range r.Transaction {
		if refusal := l.evalTooFar(command); refusal != "" {
			return refusal
		}
	}
	return l.evalTooFar(r.Args)
}

func (l *Locker) evalTooFar(command [][]byte) string {
	if len(command) < 3 || !isScriptCommand(command[0]) || strings.HasPrefix(strings.ToUpper(string(command[0])), "EVALSHA") {
		return ""
	}
	return l.scripts.of(command[1]).tooFar
}

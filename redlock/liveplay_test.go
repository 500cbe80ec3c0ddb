package redlock

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/redlock/resp"
)

// TestOverServers plays testdata/live/*.txt: what a Locker does over real servers. Its events:
//
//	script NAME LUA           a script of clients, which EVAL and EVALSHA call by this name; more such lines go on with it
//	servers N [quick]         new servers and a Locker; quick: it mends copies soon
//	all: COMMAND              a command to each server, which must succeed; 1 3: COMMAND goes to two of them
//	2 ends                    a server ends
//	run KEYS [OPTIONS]: COMMAND [| COMMAND ...]   a command or a transaction of a client. Its options: reads, scrap,
//	                          examined (a script is not recognised), watched, deletes KEY, effects, resp3, within D
//	acquire KEY VALUE D, release KEY [GET], get KEY, watch KEY
//	N times EVENT             the same again and again; # is the number
//	silently EVENT            whatever comes of it
//	at the next look EVENT    when a look at a key has been decided; at every look EVENT
//	each COMMAND              what each server answers, when all have answered everything
//	until COMMAND answers REPLY   waits until all servers that are there do
//	until rejected REASON, until ready   waits until a state of all masters has a reason that contains the words
//
// A word x*99 is x 99 times.
func TestOverServers(t *testing.T) {
	datatest.Play(t, "testdata/live/*.txt", func(t *testing.T, script *datatest.Script) {
		p := &livePlay{t: t, scripts: map[string]string{}}
		for event := range script.Events {
			if text := p.do(event); text != "" {
				script.Printf("%s", text)
			}
		}
	})
}

type livePlay struct {
	*liveSet
	t       *testing.T
	scripts map[string]string // by name
	watched *Watch
	ended   []*liveMaster
}

func (p *livePlay) do(event string) string {
	if command, isDirect := p.direct(event); isDirect {
		command()
		return ""
	}
	verb, rest, _ := strings.Cut(event, " ")
	words := strings.Fields(rest)
	switch verb {
	case "script":
		name, text, _ := strings.Cut(rest, " ")
		p.scripts[name] += text + "\n"
	case "servers":
		p.liveSet, p.ended = startLiveSet(p.t, atoi(words[0])), nil
		if len(words) > 1 {
			p.quickly()
		}
	case "run":
		return p.told(p.runs(rest))
	case "acquire":
		return p.told(p.Acquire(p.t.Context(), AcquireRequest{Key: []byte(words[0]), Value: []byte(long(words[1])), TTL: datatest.Duration(words[2])}))
	case "release":
		return p.told(p.Release(p.t.Context(), ReleaseRequest{Key: []byte(words[0]), Get: len(words) > 1}))
	case "get":
		return p.told(p.Get(p.t.Context(), 0, []byte(words[0])))
	case "watch":
		w, o := p.Watch(p.t.Context(), 0, bytesOf(words))
		p.watched = w
		return p.told(o)
	case "silently":
		p.do(rest)
	case "at":
		look, event, _ := strings.Cut(rest, " look ")
		p.atLook(look == "every", event)
	case "each":
		p.awaitIdle()
		return p.each(rest)
	case "until":
		p.until(rest)
	default:
		if len(words) > 1 && words[0] == "times" {
			return p.repeat(atoi(verb), strings.Join(words[1:], " "))
		}
		p.t.Fatalf("no event %q", event)
	}
	return ""
}

// direct tells whether an event begins with servers, and returns what it does to them.
func (p *livePlay) direct(event string) (do func(), is bool) {
	who, command, _ := strings.Cut(event, ":")
	ends := strings.TrimSuffix(who, " ends")
	if who == "all" {
		return func() { p.all(p.words(command)) }, true
	}
	for word := range strings.FieldsSeq(ends) {
		if len(word) != 1 || word < "1" || word > "9" {
			return nil, false
		}
	}
	return func() {
		for word := range strings.FieldsSeq(ends) {
			m := p.masters[atoi(word)-1]
			if ends != who {
				m.kill()
				p.ended = append(p.ended, m)
			} else {
				m.must(p.words(command)...)
			}
		}
	}, true
}

// words are those of a command, with the texts of scripts.
func (p *livePlay) words(command string) []string {
	words := strings.Fields(command)
	for i, word := range words {
		if text, isScript := p.scripts[word]; isScript {
			words[i] = text
		} else {
			words[i] = long(word)
		}
	}
	return words
}

// long is the value that a script means by a word.
func long(word string) string {
	if of, times, ok := strings.Cut(word, "*"); ok && len(of) == 1 {
		return strings.Repeat(of, atoi(times))
	}
	return strings.ReplaceAll(word, `""`, "")
}

// runs runs a client's command or transaction.
func (p *livePlay) runs(request string) Outcome {
	about, commands, _ := strings.Cut(request, ": ")
	r, ctx, examined := RunRequest{}, p.t.Context(), false
	for words := strings.Fields(about); len(words) > 0; words = words[1:] {
		switch words[0] {
		case "reads":
			r.ReadOnly = true
		case "scrap":
			r.Scrap = true
		case "examined":
			examined = true
		case "watched":
			r.Watches = []*Watch{p.watched}
		case "deletes":
			r.Deletes = append(r.Deletes, []byte(words[1]))
			words = words[1:]
		case "effects":
			r.Effects = true
		case "resp3":
			r.RESP3 = true
		case "within":
			ctx = p.within(datatest.Duration(words[1]))
			words = words[1:]
		default:
			r.Keys = append(r.Keys, []byte(words[0]))
		}
	}
	for command := range strings.SplitSeq(commands, " | ") {
		args := p.words(command)
		if strings.HasPrefix(args[0], "EVALSHA") {
			r.Scripts = append(r.Scripts, []byte(args[1]))
			args[1] = sha1Of([]byte(args[1]))
		}
		r.Transaction = append(r.Transaction, bytesOf(args))
	}
	if !strings.Contains(commands, " | ") && len(r.Deletes) == 0 && !r.Effects && r.Watches == nil {
		r.Args, r.Transaction = r.Transaction[0], nil
	}
	if examined {
		r = unrecognised(r)
	}
	return p.Run(ctx, r)
}

// told is an outcome in words.
func (p *livePlay) told(o Outcome) string {
	text := strings.Replace(o.Verdict.String(), "noquorum", "no quorum", 1)
	if o.Verdict == NoQuorum && strings.Contains(o.NoQuorumError(), "answered more than limits.lock_reply") {
		text += ": more than limits.lock_reply"
	}
	if o.Reply != nil {
		text += ": " + inOneLine(o.Reply)
	}
	if o.Value != nil {
		text += ": " + inOneLine(resp.AppendBulk(nil, string(o.Value)))
	}
	if o.Err != "" {
		text += ": " + o.Err
	}
	for _, e := range o.Effects {
		text += fmt.Sprintf(", %s is %s", e.Key, map[bool]string{true: "deleted", false: "changed"}[e.Change == KeyDeleted])
	}
	return text
}

// inOneLine is a reply as text.
func inOneLine(reply []byte) string {
	if text := strings.ReplaceAll(strings.TrimSpace(string(reply)), "\r\n", " "); len(text) < 200 {
		return text
	}
	return fmt.Sprintf("%.9s... (%d bytes)", strings.ReplaceAll(string(reply), "\r\n", " "), len(reply))
}

func (p *livePlay) atLook(every bool, event string) {
	var look func(Verdict)
	look = func(Verdict) {
		p.do(event)
		if every {
			p.examined.afterLook(look)
		}
	}
	p.examined.afterLook(look)
}

// repeat plays an event several times, and tells what came of it in order, and once what came of it again.
func (p *livePlay) repeat(times int, event string) string {
	var all []string
	for i := range times {
		for _, e := range strings.Split(event, ", then ") {
			if text := p.do(strings.ReplaceAll(e, "#", fmt.Sprint(i))); text != "" && !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	return strings.Join(all, "\n")
}

// there are the servers that have not ended.
func (p *livePlay) there() []*liveMaster {
	return slices.DeleteFunc(slices.Clone(p.masters), func(m *liveMaster) bool { return slices.Contains(p.ended, m) })
}

// each returns what each server answers.
func (p *livePlay) each(command string) string {
	var answers []string
	for _, m := range p.there() {
		answers = append(answers, inOneLine(m.do(p.words(command)...)))
	}
	if len(slices.Compact(slices.Clone(answers))) == 1 {
		return "all " + answers[0]
	}
	return strings.Join(answers, ", ")
}

// until waits for an answer of all servers, or for a state of all masters.
func (p *livePlay) until(what string) {
	command, reply, isCommand := strings.Cut(what, " answers ")
	verb, reason, _ := strings.Cut(what, " ")
	happened := func() bool {
		switch {
		case isCommand:
			return p.each(command) == "all "+reply
		case verb == "ready":
			return p.allVote()
		}
		return !slices.ContainsFunc(p.Status().Masters, func(m MasterStatus) bool { return m.State != Rejected || !strings.Contains(m.Reason, reason) })
	}
	for end := time.Now().Add(livePatience); !happened(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("it does not happen: %s; %s, %+v", what, p.each(command), p.Status())
		}
	}
}

// within is the context of a client that waits so long.
func (p *livePlay) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(p.t.Context(), d)
	p.t.Cleanup(cancel)
	return ctx
}

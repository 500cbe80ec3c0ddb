package effect

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/redlock/livetest"
	"redlock-proxy/redlock/resp"
)

// The scripts in testdata/examined run commands on a real server, between two looks. A line is a command that prepares
// the keys, or:
//
//	keys k other         the keys that are looked at
//	run EVAL "..." 1 k   an examined command; what it did to each key. Its reply must be what a plain server says, in RESP2 and RESP3.
//	transaction A | B    the same for a transaction
//	meanwhile SET k 2    what another client does from now on between WATCH and what is run
//	then SET k 2         the same run, and then this, before the run is undone
//
// What a run wrote is undone, once, and so is what created the first key.
func TestExamined(t *testing.T) {
	datatest.Play(t, "testdata/examined/*.txt", func(t *testing.T, told *datatest.Script) {
		s := &examination{Script: told, t: t, m: livetest.Start(t), keys: args("k")}
		for event := range told.Events {
			verb, rest, _ := strings.Cut(event, " ")
			switch verb {
			case "keys":
				s.keys = args(rest)
			case "run":
				s.plays(&Examination{Commands: [][][]byte{wordsOf(rest)}})
			case "transaction":
				e := &Examination{Transaction: true}
				for part := range strings.SplitSeq(rest, " | ") {
					e.Commands = append(e.Commands, wordsOf(part))
				}
				s.plays(e)
			case "look":
				s.plays(&Examination{})
			case "meanwhile":
				s.meanwhile = wordsOf(rest)
			case "then":
				s.thenOther(wordsOf(rest))
			default:
				s.setup = append(s.setup, wordsOf(event))
			}
		}
	})
}

type examination struct {
	*datatest.Script
	t     *testing.T
	m     *livetest.Server
	keys  [][]byte
	setup [][][]byte
	last  *Examination
	// meanwhile is what another client does between WATCH and what is run.
	meanwhile [][]byte
}

// args splits a command at spaces; "" stands for an empty argument.
func args(command string) [][]byte {
	var list [][]byte
	for word := range strings.SplitSeq(command, " ") {
		list = append(list, []byte(strings.Trim(word, `"`)))
	}
	return list
}

func strs(list [][]byte) []string {
	var out []string
	for _, b := range list {
		out = append(out, string(b))
	}
	return out
}

func evalOf(text string) [][]byte {
	return [][]byte{[]byte("EVAL"), []byte(text), []byte("1"), []byte("k"), []byte("token")}
}

// wordsOf splits a command at spaces. A word may be in quotes.
func wordsOf(command string) (words [][]byte) {
	for command = strings.TrimSpace(command); command != ""; command = strings.TrimSpace(command) {
		word, err := strconv.QuotedPrefix(command)
		if err != nil {
			word, _, _ = strings.Cut(command, " ")
		}
		command = command[len(word):]
		if text, err := strconv.Unquote(word); err == nil && word[0] == '"' {
			word = text
		}
		words = append(words, []byte(word))
	}
	return words
}

func (s *examination) prepares(c *livetest.Conn) {
	c.Do("FLUSHALL")
	for _, command := range s.setup {
		c.Do(strs(command)...)
	}
	if s.meanwhile != nil {
		c.Do("WATCH", string(s.keys[0]))
		s.m.Dial().Do(strs(s.meanwhile)...)
	}
}

// plain is what a server says to the commands.
func (s *examination) plain(e *Examination) []byte {
	c := s.m.Dial()
	if e.RESP3 {
		c.Do("HELLO", "3")
	}
	s.prepares(c)
	blocks := len(e.Commands) > 0 && string(e.Commands[0][0]) == "BLPOP" // not in MULTI
	if len(e.Commands) == 1 && !e.Transaction && !blocks {
		return c.Do(strs(e.Commands[0])...)
	}
	c.Do("MULTI")
	for _, command := range e.Commands {
		c.Do(strs(command)...)
	}
	reply := c.Do("EXEC")
	if !e.Transaction && blocks {
		results, _ := resp.Elements(reply)
		return results[0]
	}
	return reply
}

func (s *examination) run(c *livetest.Conn, e *Examination) Result {
	replies := c.Ask(e.Append(nil, 0), e.Replies())
	x, err := e.Parse(replies)
	if err != nil {
		s.t.Fatalf("%v: %q", err, replies)
	}
	reply, refusal := string(x.Reply), string(x.QueueingError)
	var dumps [][]byte
	for _, i := range slices.Concat(x.Before, x.After) {
		dumps = append(dumps, bytes.Clone(i.Dump))
	}
	for _, r := range replies { // what was parsed outlives the stream's buffer
		for i := range r {
			r[i] = 'x'
		}
	}
	for i, image := range slices.Concat(x.Before, x.After) {
		if !bytes.Equal(image.Dump, dumps[i]) || string(x.Reply) != reply || string(x.QueueingError) != refusal {
			s.t.Fatalf("%s: the result changed with the buffer", reply)
		}
	}
	if got := c.Do("PING"); string(got) != "+PONG\r\n" {
		s.t.Fatalf("the stream is out of step: %q", got)
	}
	return x
}

// plays examines commands, in both protocols, and undoes what they wrote.
func (s *examination) plays(e *Examination) {
	e.Keys, s.last = s.keys, e
	var told []string
	for _, e.RESP3 = range []bool{false, true} {
		text := ""
		want := s.plain(e)
		c := s.m.Dial()
		s.prepares(c)
		was := look(s.t, s.m.Conn, string(s.keys[0]))
		x := s.run(c, e)
		if e.Commands != nil && !bytes.Equal(x.Reply, want) {
			text += fmt.Sprintf("says %q, a plain server %q; ", x.Reply, want)
		}
		for name, is := range map[string]bool{"failed; ": x.Failed, "aborted; ": x.Aborted, "blind; ": x.Blind} {
			if is {
				text += name
			}
		}
		if x.QueueingError != nil {
			text += "refused as " + string(resp.ErrorCode(x.QueueingError)) + "; "
		}
		for k := range x.Before {
			text += fmt.Sprintf("%s %v; ", s.keys[k], Compare(x.Before[k], x.After[k]))
		}
		if len(x.Before) > 0 {
			text += s.undoes(c, x, was)
		}
		if told = append(told, text); e.RESP3 && told[0] != told[1] {
			s.Printf("RESP2: %s", told[0])
		}
	}
	s.Printf("%s", strings.TrimSuffix(told[1], "; "))
}

// undoes tells whether a run's images are what is there, and whether what it wrote to the first key is put back.
func (s *examination) undoes(c *livetest.Conn, x Result, was Image) string {
	key := string(s.keys[0])
	held := x.After[0].Now - x.Before[0].Now + resp.ExpiryTolerance // the server may be held up while it looks
	for _, pair := range [][2]Image{{was, x.Before[0]}, {look(s.t, c, key), x.After[0]}} {
		if !bytes.Equal(pair[0].Dump, pair[1].Dump) || !Near(pair[0].Expiry(), pair[1].Expiry(), held) {
			return fmt.Sprintf("%+v is seen as %+v", pair[0], pair[1])
		}
	}
	switch {
	case !Compare(x.Before[0], x.After[0]).Wrote() || held > resp.ExpiryTolerance+1:
		return ""
	case undo(c, key, x.Before[0], x.After[0]) != undone || !sameImage(look(s.t, c, key), was):
		return "it is not put back"
	case undo(c, key, x.Before[0], x.After[0]) != leftAlone && !was.Absent():
		return "it is put back twice"
	case was.There() && undo(c, key, Missing, was) != undone:
		return "what created it is not undone"
	}
	return ""
}

// thenOther has another client change the key after the run. Whatever happened, it is then another's.
func (s *examination) thenOther(command [][]byte) {
	c := s.m.Dial()
	s.prepares(c)
	x := s.run(c, s.last)
	c.Do(strs(command)...)
	others := look(s.t, c, string(s.keys[0]))
	if got := undo(c, string(s.keys[0]), x.Before[0], x.After[0]); got != leftAlone || !sameImage(look(s.t, c, string(s.keys[0])), others) {
		s.Printf("it is not left alone: %q", got)
		return
	}
	s.Printf("it is left alone")
}

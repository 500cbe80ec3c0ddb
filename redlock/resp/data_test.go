package resp

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"redlock-proxy/integration/datatest"
)

// Questions have replies in Go's quotes, perhaps in parts with + between them, or many times: "x"*3. Word for word:
//
//	equivalent [exactly] A B   whether two replies say the same, in either order
//	elements A                 the elements of an aggregate
//	serve A                    whether an error says that its master cannot serve, and with which code
//	decimal A                  a number
//	scan [pushes] [bounded] A  how a stream is scanned that begins so, wherever it is cut
func TestData(t *testing.T) { datatest.Run(t, ask) }

func ask(t *testing.T, question string) string {
	name, rest, _ := strings.Cut(question, " ")
	options, _, _ := strings.Cut(rest, `"`)
	words := texts(t, strings.TrimPrefix(rest, options))
	first := []byte(words[0])
	switch name {
	case "equivalent":
		second, differs := []byte(words[1]), large
		if options != "" {
			differs = nil
		}
		is := Equivalent(first, second, differs)
		if is != Equivalent(second, first, differs) {
			return "it depends on the order"
		}
		return strconv.FormatBool(is)
	case "elements":
		elements, err := Elements(first)
		if elements == nil {
			return fmt.Sprintf("none, malformed: %v", err != nil)
		}
		return fmt.Sprintf("%q", elements)
	case "serve":
		if !IsError(first) {
			return fmt.Sprintf("cannot: %v, inside EXEC: %v, and it is no error", CannotServe(first), CannotServeInside(first))
		}
		return fmt.Sprintf("cannot: %v, inside EXEC: %v, %s", CannotServe(first), CannotServeInside(first), InnerCode(first))
	case "decimal":
		n, ok := ParseDecimal(first)
		return fmt.Sprint(n, " ", ok)
	case "scan":
		scanner := Scanner{PushCounts: strings.Contains(options, "pushes")}
		if strings.Contains(options, "bounded") {
			scanner.MaxBytes = 40
		}
		answer := scannedInTwo(t, scanner, words[0])
		if options == "" && scannedInTwo(t, Scanner{RESP2: true}, words[0]) != answer {
			answer += ", which RESP2 has not"
		}
		return answer
	}
	t.Fatalf("no such question: %s", question)
	return ""
}

// large lets large numbers differ, which may be remaining times.
func large(m, n int64) bool { return m > 1 && n > 1 }

// texts reads the texts of a question.
func texts(tb testing.TB, rest string) (all []string) {
	text := ""
	for rest != "" {
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			tb.Fatalf("%s: %v", rest, err)
		}
		part, _ := strconv.Unquote(quoted)
		end := strings.IndexAny(rest[len(quoted):]+" ", "+ ") + len(quoted)
		if times, err := strconv.Atoi(strings.TrimPrefix(rest[len(quoted):end], "*")); err == nil {
			part = strings.Repeat(part, times)
		}
		text += part
		rest = rest[end:]
		if more := strings.HasPrefix(rest, "+"); !more {
			all, text = append(all, text), ""
		}
		if rest != "" {
			rest = rest[1:]
		}
	}
	return all
}

// scannedInTwo is how a scanner takes a text, whole or cut at any place. More follows, which it must not touch.
func scannedInTwo(t *testing.T, s Scanner, raw string) string {
	stream := raw + "\x00rest"
	answer := ""
	for cut := 0; cut <= len(raw); cut = nextCut(cut, len(raw)) {
		s := s
		n, done, err := s.Scan([]byte(stream[:cut]))
		if !done && err == nil {
			var more int
			more, done, err = s.Scan([]byte(stream[n:]))
			n += more
		}
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprintf("%c of %d bytes, whole: %v", s.Kind(), n, done)
		} else if n, done, again := s.Scan([]byte("+OK\r\n")); n != 0 || done || again != err {
			got += ", and it goes on"
		}
		if answer == "" {
			answer = got
		}
		if got != answer {
			t.Errorf("%.30q cut at %d: %s, and otherwise %s", raw, cut, got, answer)
		}
	}
	return answer
}

// nextCut is where to cut a value of this length after this place: everywhere, or
// near both ends and here and there between if it is long.
func nextCut(at, length int) int {
	if at < 100 || at >= length-100 {
		return at + 1
	}
	return min(at+331, length-100)
}

// A value is a whole reply.
type value struct {
	raw  string
	kind byte
}

// values returns the replies of testdata/replies.txt, and the malformed ones.
func values(tb testing.TB) (whole []value, malformed []string) {
	text, err := os.ReadFile("testdata/replies.txt")
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		question, answer, _ := strings.Cut(line, " -> ")
		raw, isPlain := strings.CutPrefix(question, `scan "`)
		if !isPlain {
			continue
		}
		raw = texts(tb, `"`+raw)[0]
		if strings.Contains(answer, "whole: true") {
			whole = append(whole, value{raw, answer[0]})
		} else {
			malformed = append(malformed, raw)
		}
	}
	if len(whole) < 30 || len(malformed) < 20 {
		tb.Fatalf("%d replies and %d malformed ones", len(whole), len(malformed))
	}
	return whole, malformed
}

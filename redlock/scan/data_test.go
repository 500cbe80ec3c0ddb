package scan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/datatest"
)

// testdata has walks over toy masters, the decisions about their pace and size, what copies of a key come to ("hold"), and what
// masters reply: to a look at keys ("copies"), to a question about their sizes, about the server and for a page of keys.
func TestData(t *testing.T) {
	datatest.Run(t, func(t *testing.T, question string) string {
		verb, rest, _ := strings.Cut(question, " ")
		words := strings.Fields(rest)
		switch verb {
		case "walk":
			return walkToys(t, words)
		case "together":
			return strconv.Itoa(together(numbers(t, words[1:]), numbers(t, words[:1])[0]))
		case "rest":
			took, err := time.ParseDuration(words[0])
			if err != nil {
				t.Fatal(err)
			}
			return restAfter(took).String()
		case "hold":
			h := Hold(copiesOf(rest))
			return fmt.Sprintf("%v %s by %d, others %d, missing %d, of %d masters %d needed, %v left", h.State, cmp.Or(h.Digest, "-"), h.Holders, h.Others, h.Missing, h.Masters, h.Needed, h.TTL)
		case "copies":
			copies, err := parseCopies(repliesOf(t, rest))
			return copiesText(copies, err)
		case "sizes":
			sizes, err := parseSizes(repliesOf(t, rest))
			return fmt.Sprint(sizes, err != nil)
		case "server":
			run, dbs, err := parseServer(repliesOf(t, rest)[0])
			return fmt.Sprintf("%q %v, malformed: %v", run, dbs, err != nil)
		case "page":
			next, keys, err := parsePage(repliesOf(t, rest)[0])
			return fmt.Sprintf("%q %q, malformed: %v", next, keys, err != nil)
		}
		t.Fatalf("%q is no question", question)
		return ""
	})
}

func numbers(t *testing.T, words []string) (list []int64) {
	for _, word := range words {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, n)
	}
	return list
}

// A toyMaster has keys, in the order in which SCAN shows them.
type toyMaster struct {
	keys  []toyKey
	votes bool
	fails bool // at the end of its keys
	// restarts means that another run of the server answers after the last page.
	restarts bool
	scanned  bool
}

type toyKey struct {
	db   int
	name string
	late bool // the master gets it behind its scan
}

// toys are a Source. It scans two keys at a time.
type toys struct {
	masters []toyMaster
	looks   int
	asked   []string // databases that were scanned from the beginning
}

func (f *toys) Size() int { return len(f.masters) }

func (f *toys) Votes(i int) bool { return f.masters[i].votes }

func (f *toys) Server(_ context.Context, i int) (run string, dbs []int, err error) {
	if f.masters[i].restarts && f.masters[i].scanned {
		run = "another"
	}
	for _, key := range f.masters[i].keys {
		if !slices.Contains(dbs, key.db) {
			dbs = append(dbs, key.db)
		}
	}
	if len(dbs) == 0 && f.masters[i].fails {
		return "", nil, errGone
	}
	return run, dbs, nil
}

func (f *toys) Page(_ context.Context, i, db int, cursor []byte) ([]byte, [][]byte, error) {
	f.masters[i].scanned = true
	m, at := f.masters[i], int(numbersOf(cursor))
	if at == 0 {
		f.asked = append(f.asked, fmt.Sprintf("%d/%d", i+1, db))
	}
	var names [][]byte
	for _, key := range m.keys {
		if key.db == db && !key.late {
			names = append(names, []byte(key.name))
		}
	}
	switch end := at + 2; {
	case end < len(names):
		return strconv.AppendInt(nil, int64(end), 10), names[at:end], nil
	case m.fails:
		return nil, nil, errGone
	default:
		return []byte("0"), names[at:], nil
	}
}

var errGone = errors.New("it is gone")

func numbersOf(cursor []byte) int64 {
	n, _ := strconv.ParseInt(string(cursor), 10, 64)
	return n
}

func (f *toys) look(db int, keys [][]byte) [][]Copy {
	f.looks++
	all := make([][]Copy, len(keys))
	for k, key := range keys {
		for _, m := range f.masters {
			c := Copy{Heard: true, Votes: m.votes}
			if slices.ContainsFunc(m.keys, func(k toyKey) bool { return k.db == db && k.name == string(key) }) {
				c.Type = "string"
			}
			all[k] = append(all[k], c)
		}
	}
	return all
}

// walkToys makes a walk over masters such as "1:a,3/b" (a in database 0, b in 3), "2:-a"
// (it does not vote), "3:a!" (it fails at its end), "4:a~" (it restarts) or "5:+a" (it gets a
// behind its scan). "stop=2" ends it with the second key, and "without=a" does not want a.
func walkToys(t *testing.T, words []string) string {
	source := &toys{}
	var shown []string
	stop, without := -1, ""
	for _, word := range words {
		if text, ok := strings.CutPrefix(word, "stop="); ok {
			stop = int(numbers(t, []string{text})[0])
			continue
		}
		if text, ok := strings.CutPrefix(word, "without="); ok {
			without = text
			continue
		}
		_, text, _ := strings.Cut(word, ":")
		m := toyMaster{votes: !strings.HasPrefix(text, "-"), fails: strings.HasSuffix(text, "!"), restarts: strings.HasSuffix(text, "~")}
		for _, name := range strings.FieldsFunc(strings.Trim(text, "-!~"), func(r rune) bool { return r == ',' }) {
			name, late := strings.CutPrefix(name, "+")
			key := toyKey{name: name, late: late}
			if db, name, in := strings.Cut(name, "/"); in {
				key = toyKey{int(numbers(t, []string{db})[0]), name, late}
			}
			m.keys = append(m.keys, key)
		}
		source.masters = append(source.masters, m)
	}
	w := show{
		ctx: t.Context(), look: source.look,
		wants: func(_ int, key []byte) bool { return string(key) != without },
		each: func(db int, key []byte, copies []Copy) bool {
			if len(shown)+1 == stop {
				return false
			}
			shown = append(shown, fmt.Sprintf("%d/%s", db, key))
			return true
		},
	}
	end := "not all"
	if Walk(t.Context(), source, w.visit) {
		end = "all"
	}
	return fmt.Sprintf("%s; scanned %s; %s", strings.Join(shown, " "), strings.Join(source.asked, " "), end)
}

// A walk ends with its context, and looks at no more keys than a few at a time.
func TestWalkIsBounded(t *testing.T) {
	source := &toys{masters: []toyMaster{{votes: true}}}
	for n := range 100 {
		source.masters[0].keys = append(source.masters[0].keys, toyKey{name: strconv.Itoa(n)})
	}
	ctx, cancel := context.WithCancel(t.Context())
	shown := 0
	w := show{ctx: ctx, look: source.look, wants: func(int, []byte) bool { return true }, each: func(int, []byte, []Copy) bool {
		if shown++; shown == 10 {
			cancel()
		}
		return true
	}}
	if Walk(ctx, source, w.visit) || shown != 10 || source.looks != 5 {
		t.Errorf("it showed %d keys after its end, and looked %d times", shown-10, source.looks)
	}
}

// repliesOf reads replies in Go's quotes.
func repliesOf(t *testing.T, rest string) (replies [][]byte) {
	for rest != "" {
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			t.Fatalf("%s: %v", rest, err)
		}
		text, _ := strconv.Unquote(quoted)
		replies, rest = append(replies, []byte(text)), strings.TrimSpace(rest[len(quoted):])
	}
	return replies
}

func copiesText(copies []Copy, err error) string {
	if err != nil {
		return "malformed"
	}
	var words []string
	for _, c := range copies {
		word := "absent"
		if c.there() {
			word = fmt.Sprintf("%s, a digest of %d, %v left", c.Type, len(c.Digest), c.TTL)
		}
		words = append(words, word)
	}
	return strings.Join(words, "; ")
}

// copiesOf are copies on masters: a letter is a voting master's content, "-" an absent key, "?"
// no answer, and a letter in brackets the copy of a master that may not vote. A content has as many seconds left as
// its master's number, or lives for ever: "a*".
func copiesOf(text string) (copies []Copy) {
	for i, word := range strings.Fields(text) {
		c := Copy{Heard: word != "?"}
		content := strings.Trim(word, "()")
		c.Votes = c.Heard && content == word
		content, endless := strings.CutSuffix(content, "*")
		if c.Heard && content != "-" {
			c.Type, c.Digest, c.TTL = "string", content, time.Duration(i+1)*time.Second
			copy(c.sum[:], content)
		}
		if endless {
			c.TTL = NoTTL
		}
		copies = append(copies, c)
	}
	return copies
}

// A large value is not read. Copies of it count as equal, and show no digest.
func TestLargeCopies(t *testing.T) {
	copies, err := parseCopies([][]byte{[]byte(":1500\r\n"), []byte("+hash\r\n"), []byte(":-1\r\n"), []byte("+string\r\n")})
	if err != nil {
		t.Fatal(err)
	}
	for i := range copies {
		copies[i].Heard, copies[i].Votes = true, true
	}
	if h := Hold([]Copy{copies[0], copies[0], copies[1]}); h.State != Held || !h.Large || h.Digest != "" || h.Holders != 2 || h.Text != nil {
		t.Errorf("%+v", h)
	}
}

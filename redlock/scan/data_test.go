package scan

import (
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

// testdata has walks over toy masters, and the decisions about their pace and size.
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

func TestParseSizes(t *testing.T) {
	parse := func(replies ...string) ([]int64, error) {
		var raw [][]byte
		for _, reply := range replies {
			raw = append(raw, []byte(reply))
		}
		return parseSizes(raw)
	}
	sizes, err := parse(":56\r\n", "$-1\r\n", "_\r\n", "-ERR unknown command 'MEMORY'\r\n", "-NOPERM no\r\n", "-LOADING x\r\n")
	if err != nil || !slices.Equal(sizes, []int64{56, 0, 0, 0, 0, 0}) {
		t.Errorf("%v %v", sizes, err)
	}
	for _, wrong := range []string{"+OK\r\n", "*0\r\n", ":x\r\n"} {
		if sizes, err := parse(wrong); err == nil {
			t.Errorf("%q: %v", wrong, sizes)
		}
	}
}

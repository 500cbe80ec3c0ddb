package script

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/yuin/gopher-lua/parse"
)

// maxText bounds the texts that are read: the real ones are short.
const maxText = 4 << 10

// A Release is a script that is compare-and-delete: where its key holds the
// owner's value it deletes the key, and nowhere else. It writes nothing besides.
type Release struct {
	key, owner word
	deleted    answer // how it answers where it deleted, and never otherwise
	highest    [2]int // the highest index of KEYS and of ARGV that it looks at
	errors     []string
}

// Errors are those that the script answers with in words of its own, without the
// sign in front. Who could take one for a server's own words must not go by what
// servers answer to this script.
func (r *Release) Errors() []string { return r.errors }

// A Call is a release with the words of one client's command.
type Call struct {
	Key, Owner []byte
	// Deleted is the reply, in RESP2, of a server that has deleted the key. Any other
	// reply is one of a server that has not.
	Deleted string
}

// A word is one of a script's arguments, counted from 1 as Lua does.
type word struct {
	argv  bool // ARGV[index], else KEYS[index]
	index int
}

// An answer is what a script replies: exact bytes, or the owner's value.
type answer struct {
	exact string
	owner bool
}

// Recognise reads a script's text. False means that it is no Release, or that
// this is not certain.
func Recognise(text []byte) (*Release, bool) {
	if len(text) > maxText || bytes.IndexByte(text, '\\') >= 0 {
		return nil, false
	}
	program, err := parse.Parse(bytes.NewReader(text), "")
	if err != nil {
		return nil, false
	}
	var trials [allContents]*trial
	r := &Release{}
	for holds := range allContents {
		t := &trial{holds: holds, held: holds, highest: &r.highest}
		if t.run(program); t.uncertain {
			return nil, false
		}
		trials[holds] = t
	}
	mine := trials[ownersValue]
	var certain bool
	if r.deleted, certain = mine.reply(); !certain || !mine.deleted {
		return nil, false
	}
	r.key, r.owner = mine.key, mine.owner
	for _, t := range trials {
		if t.held != ownersValue && !t.spares(r) {
			return nil, false
		}
		if text := t.answer.text; t.answer.kind == kindError && text != "" && !slices.Contains(r.errors, text) {
			r.errors = append(r.errors, text)
		}
	}
	return r, true
}

// In fits the release to an EVAL, or an EVALSHA, of its script. False means that
// the words which it looks at are not all there.
func (r *Release) In(command [][]byte) (Call, bool) {
	if len(command) < 3 {
		return Call{}, false
	}
	keys, err := strconv.Atoi(string(command[2]))
	if err != nil || keys < r.highest[0] || len(command)-3-keys < r.highest[1] {
		return Call{}, false
	}
	at := func(w word) []byte {
		if w.argv {
			return command[2+keys+w.index]
		}
		return command[2+w.index]
	}
	c := Call{Key: at(r.key), Owner: at(r.owner), Deleted: r.deleted.exact}
	if r.deleted.owner {
		c.Deleted = bulk(string(c.Owner))
	}
	return c, true
}

func bulk(text string) string {
	return "$" + strconv.Itoa(len(text)) + "\r\n" + text + "\r\n"
}

const null = "$-1\r\n"

// isBulk tells whether the answer is a string, and not the lack of one.
func (a answer) isBulk() bool { return a.owner || a.exact[0] == '$' && a.exact != null }

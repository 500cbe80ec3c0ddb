package script

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/yuin/gopher-lua/parse"
)

// maxText bounds the texts that are parsed, in bytes. Real ones are short.
const maxText = 4 << 10

// A Release is a compare-and-delete script: it deletes its key if the key holds the
// owner's value, and writes nothing else.
type Release struct {
	key, owner word
	deleted    answer // the reply if it deleted, and only then
	reply      []byte // the same for all calls; nil if it is the owner's value
	highest    [2]int // the highest index of KEYS and of ARGV that it reads
	errors     []string
}

// Errors are the errors that the script itself words, without the leading "-". A
// caller that reads errors of servers must make sure that none of these looks like one.
func (r *Release) Errors() []string { return r.errors }

// A Call is a release with the arguments of one command.
type Call struct {
	Key, Owner []byte
	// Deleted is the RESP2 reply of a server that deleted the key. A server that did
	// not delete it never replies this. Many calls share it, so nobody may change it.
	Deleted []byte
}

// A word is one of a script's arguments, counted from 1 as Lua does.
type word struct {
	argv  bool // ARGV[index], else KEYS[index]
	index int
}

// An answer is a script's reply: exact bytes, or the owner's value.
type answer struct {
	exact string
	owner bool
}

// Recognise reads a script's text. It returns false if the script is no Release or if
// that is uncertain.
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
	if !r.deleted.owner {
		r.reply = []byte(r.deleted.exact)
	}
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

// In applies the release to an EVAL or EVALSHA of its script. It returns false if the
// command lacks keys or arguments that the script reads.
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
	c := Call{Key: at(r.key), Owner: at(r.owner), Deleted: r.reply}
	if r.deleted.owner {
		c.Deleted = []byte(bulk(string(c.Owner)))
	}
	return c, true
}

func bulk(text string) string {
	return "$" + strconv.Itoa(len(text)) + "\r\n" + text + "\r\n"
}

const null = "$-1\r\n"

// isBulk tells whether the answer is a bulk string other than null.
func (a answer) isBulk() bool { return a.owner || a.exact[0] == '$' && a.exact != null }

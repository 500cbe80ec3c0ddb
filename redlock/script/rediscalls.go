package script

import (
	"strings"
)

// command is redis.call. Any command but these makes the trial uncertain, and so does
// any key but the first one.
func (t *trial) command(words []value, caught bool) value {
	if t.ended || t.uncertain || len(words) < 2 || words[0].kind != kindText {
		return t.doubt()
	}
	name, args := strings.ToLower(words[0].text), words[1:]
	if name == "publish" && len(args) == 2 && args[0].isString() && args[1].isString() {
		return value{kind: kindSomeNumber}
	}
	if args[0].kind != kindArgument || len(args) != 1 {
		return t.doubt()
	}
	if name == "get" && t.key.index == 0 {
		t.key = args[0].word
	}
	if args[0].word != t.key {
		return t.doubt()
	}
	switch name {
	case "get":
		return t.get(caught)
	case "getdel":
		v := t.get(caught)
		t.delete()
		return v
	case "del", "unlink":
		there := t.holds != nothing
		t.delete()
		if there {
			return integer(1)
		}
		return integer(0)
	}
	return t.doubt()
}

// get ends the script with an error if the key's value is no string, unless pcall
// catches the error.
func (t *trial) get(caught bool) value {
	switch t.holds {
	case nothing:
		return truth(false)
	case noString:
		if !caught {
			t.end(value{kind: kindError})
		}
		return value{kind: kindError}
	}
	return value{kind: kindContent}
}

func (t *trial) delete() {
	if !t.ended && t.holds != nothing {
		t.deleted, t.holds = true, nothing
	}
}

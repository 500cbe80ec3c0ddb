package unruled

import "bytes"

// A Shape says what a text does with its first key, as far as its words show. It is advice: no vote depends on it. The
// zero Shape is that of an unknown text.
type Shape struct {
	ID uint64 // tells texts apart; 0: the text is unknown

	Takes   bool // it creates the key, which then ends by itself, only if what it looks at allows it
	Extends bool // it looks at the key, and then changes its end
	Deletes bool // it decides, and then deletes the key or a part of it
}

// longestShape bounds the texts that are read, in bytes. Those of locks are short. Long ones are those of job
// queues, which do many things at once.
const longestShape = 4 << 10

// meanings of commands and options that a text has in quotes.
type meaning uint8

const (
	looks meaning = 1 << iota
	creates
	createsIfNone
	ends // the key then ends by itself
	deletes
)

// means has the commands of the texts that libraries send. The commands that only count (INCR), or that
// delete what is old (ZREMRANGEBYSCORE), are those of rate limits.
var means = map[string]meaning{
	"get": looks, "mget": looks, "getrange": looks, "exists": looks, "hget": looks, "hexists": looks,
	"zscore": looks, "sismember": looks, "type": looks, "hmget": looks, "hlen": looks, "scard": looks, "zcard": looks,
	"set": creates, "mset": creates, "hset": creates, "hmset": creates, "hincrby": creates, "sadd": creates, "zadd": creates,
	"setex": creates | ends, "psetex": creates | ends,
	"setnx": createsIfNone, "msetnx": createsIfNone, "hsetnx": createsIfNone, "nx": createsIfNone,
	"expire": ends, "pexpire": ends, "expireat": ends, "pexpireat": ends, "getex": ends,
	"ex": ends, "px": ends, "exat": ends, "pxat": ends,
	"del": deletes, "unlink": deletes, "getdel": deletes, "delex": deletes, "delifeq": deletes,
	"hdel": deletes, "srem": deletes, "zrem": deletes,
}

// ShapeOf reads a text. id is never 0, and the same for the same text only.
func ShapeOf(id uint64, text []byte) Shape {
	s := Shape{ID: id}
	if len(text) > longestShape {
		return s
	}
	var does meaning
	decides := false // also: the reply of a command is compared
	for len(text) > 0 {
		switch c := text[0]; {
		case c == '-' && len(text) > 1 && text[1] == '-':
			_, text, _ = bytes.Cut(text, []byte("\n"))
		case c == '\'' || c == '"':
			end := bytes.IndexByte(text[1:], c)
			if end < 0 {
				return s // it does not compile
			}
			word := means[string(lower(text[1:1+end]))]
			text = text[end+2:]
			if word == deletes && !decides || isOfAnotherKey(text) {
				word = 0
			}
			does |= word
		case isLetter(c):
			n := 1
			for n < len(text) && isLetter(text[n]) {
				n++
			}
			switch string(text[:n]) {
			case "then", "and", "or", "function":
				decides = true
			}
			text = text[n:]
		default:
			text = text[1:]
		}
	}
	has := func(m meaning) bool { return does&m != 0 }
	s.Takes = has(ends) && (has(createsIfNone) || decides && has(looks) && has(creates))
	s.Extends = decides && has(ends) && has(looks)
	s.Deletes = has(deletes)
	return s
}

// isOfAnotherKey tells whether the key after a command's name is KEYS[2] or a later one.
func isOfAnotherKey(text []byte) bool {
	index, found := bytes.CutPrefix(bytes.TrimLeft(text, ", \t\n"), []byte("KEYS["))
	return found && len(index) > 0 && '1' <= index[0] && index[0] <= '9' && !bytes.HasPrefix(index, []byte("1]"))
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' }

// lower returns a short word in lower case, and nothing for a long one, which is no word of means.
func lower(word []byte) []byte {
	var space [10]byte
	if len(word) > len(space) {
		return nil
	}
	for i, c := range word {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		space[i] = c
	}
	return space[:len(word)]
}

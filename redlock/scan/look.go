package scan

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"time"

	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/rdb"
	"redlock-proxy/redlock/resp"
)

// Reader reads what masters hold.
type Reader struct{ box *ballot.Box }

// NewReader makes a Reader that asks by ballots of box.
func NewReader(box *ballot.Box) *Reader { return &Reader{box} }

// A Copy is what one master holds under a key.
type Copy struct {
	Heard bool   // the master answered; if not, all else is empty
	Votes bool   // it may vote
	Type  string // as TYPE replies; empty: the key is absent
	Text  []byte // a string's value, which is a secret; nil for any other type
	TTL   time.Duration
	// Digest identifies the content without showing it: the first 8 hex digits of the
	// SHA-256 of a string, or of another type's canonical content. It is empty if the
	// content is Large.
	Digest string
	Large  bool // too large to be read, so nobody knows whether it equals another copy

	sum [sha256.Size]byte
}

// NoTTL is the TTL of a key that does not expire.
const NoTTL time.Duration = -1

// longestTTL is the longest that is shown, in milliseconds: 292 years. A master may have more.
const longestTTL = int64(math.MaxInt64 / time.Millisecond)

func (c Copy) there() bool { return c.Type != "" }

// Look asks all masters what they hold. It returns the copies of each key, by master. It
// asks for sizes first, because too long an answer would end the stream of every master.
func (r *Reader) Look(db int, keys [][]byte) [][]Copy {
	most := min(mostContent, r.box.Masters.Limits().MaxReply/4)
	sizes := r.sizes(db, keys)
	var all [][]Copy
	for len(keys) > 0 {
		n := together(sizes, most)
		all = append(all, r.contents(db, keys[:n], func(k int) bool { return sizes[k] > most })...)
		keys, sizes = keys[n:], sizes[n:]
	}
	return all
}

// mostContent is the most memory that values may take to be read together, in bytes.
const mostContent = 1 << 20

// together is the number of keys to read at once: at least one, and no more than the limit
// allows. Nobody reads keys above the limit, so they take no room.
func together(sizes []int64, most int64) int {
	sum := int64(0)
	for k, size := range sizes {
		if size > most {
			continue
		}
		if sum += size; sum > most {
			return k
		}
	}
	return len(sizes)
}

// sizes returns how much memory each key takes where it takes most. It is 0 if no master
// says.
func (r *Reader) sizes(db int, keys [][]byte) []int64 {
	var frames []byte
	for _, key := range keys {
		frames = resp.AppendCommand(frames, []byte("MEMORY"), []byte("USAGE"), key)
	}
	sizes := make([]int64, len(keys))
	for _, a := range poll(r, db, frames, len(keys), parseSizes) {
		for k, size := range a.Value {
			sizes[k] = max(sizes[k], size)
		}
	}
	return sizes
}

// parseSizes reads MEMORY USAGE of each key. It is 0 for an absent key, and for a server that
// does not tell.
func parseSizes(replies [][]byte) ([]int64, error) {
	sizes := make([]int64, len(replies))
	for k, reply := range replies {
		size, ok := resp.ParseInteger(reply)
		if !ok && !resp.IsNil(reply) && !resp.IsError(reply) {
			return nil, ballot.ReadAs(reply, false)
		}
		sizes[k] = size
	}
	return sizes, nil
}

// contents returns the copies of keys. It does not read the large ones.
func (r *Reader) contents(db int, keys [][]byte, large func(k int) bool) [][]Copy {
	var frames []byte
	for k, key := range keys {
		frames = resp.AppendCommand(frames, []byte("PTTL"), key)
		if large(k) {
			frames = resp.AppendCommand(frames, []byte("TYPE"), key)
		} else {
			frames = resp.AppendCommand(frames, []byte("DUMP"), key)
		}
	}
	answers := poll(r, db, frames, 2*len(keys), parseCopies)
	all := make([][]Copy, len(keys))
	for k := range keys {
		all[k] = make([]Copy, len(answers))
		for i, a := range answers {
			if a.State.Heard() {
				all[k][i] = a.Value[k]
				all[k][i].Heard, all[k][i].Votes = true, a.State == quorum.Answered
			}
		}
	}
	return all
}

// poll puts commands to the masters that answer now, and waits for all of them.
func poll[A any](r *Reader, db int, frames []byte, replies int, parse func([][]byte) (A, error)) []quorum.Answer[A] {
	serving := r.box.Masters.List().Serving(db)
	return ballot.Poll(r.box, nil, ballot.Question[A]{
		Kind:    ballot.KindRead,
		DB:      db,
		Replies: replies,
		Parse:   parse,
		Each: func(i int) []byte {
			if serving.Has(i) {
				return frames
			}
			return nil
		},
		Vote:   func(A) ballot.Vote { return ballot.Granted },
		Decide: quorum.Complete[A],
	}).Answers
}

// parseCopies reads PTTL and DUMP of each key, or PTTL and TYPE of a large one.
func parseCopies(replies [][]byte) ([]Copy, error) {
	copies := make([]Copy, len(replies)/2)
	for k := range copies {
		left, ok := resp.ParseInteger(replies[2*k])
		if err := ballot.ReadAs(replies[2*k], ok); err != nil {
			return nil, err
		}
		reply := replies[2*k+1]
		if kind, ok := parseType(reply); ok {
			if kind != "none" && left != effect.NoKey { // it may expire between the two
				copies[k] = largeCopy(kind, left)
			}
			continue
		}
		if resp.IsError(reply) {
			return nil, ballot.ErrUnable // embedded masters cannot dump every type
		}
		dump, ok := resp.ParseBulk(reply)
		if !resp.IsNil(reply) && !ok {
			return nil, ballot.ReadAs(reply, false)
		}
		if !resp.IsNil(reply) && left != effect.NoKey {
			copies[k] = newCopy(dump, left)
		}
	}
	return copies, nil
}

// parseType reads a reply to TYPE. ok is false for a reply to DUMP.
func parseType(reply []byte) (kind string, ok bool) {
	text, ok := bytes.CutPrefix(reply, []byte("+"))
	return string(bytes.TrimSuffix(text, []byte("\r\n"))), ok
}

func newCopy(dump []byte, left int64) Copy {
	v := rdb.Read(dump)
	c := Copy{Type: v.Kind.String(), TTL: shownTTL(left)}
	if v.Kind == rdb.String {
		c.Text = append([]byte{}, v.Items[0]...)
		c.sum = sha256.Sum256(c.Text)
	} else {
		hash := sha256.New()
		hash.Write([]byte{byte(v.Kind)})
		for _, item := range v.Items {
			hash.Write(binary.AppendUvarint(nil, uint64(len(item))))
			hash.Write(item)
		}
		hash.Sum(c.sum[:0])
	}
	c.Digest = hex.EncodeToString(c.sum[:4])
	return c
}

// largeCopy is a copy of which only the type is known. It counts as equal to all of its kind.
func largeCopy(kind string, left int64) Copy {
	return Copy{Type: kind, TTL: shownTTL(left), Large: true, sum: sha256.Sum256([]byte("large " + kind))}
}

func shownTTL(left int64) time.Duration {
	if left < 0 {
		return NoTTL
	}
	return time.Duration(min(left, longestTTL)) * time.Millisecond
}

// Outstanding tells which masters owe this process an answer about a key, by master.
func (r *Reader) Outstanding(db int, key []byte) []bool {
	owing := r.box.Lanes.Outstanding(db, string(key))
	list := make([]bool, r.box.Masters.List().Size())
	for i := range list {
		list[i] = owing.Has(i)
	}
	return list
}

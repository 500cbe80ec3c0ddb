package inspect

import (
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

// New makes a Reader that asks by ballots of box.
func New(box *ballot.Box) *Reader { return &Reader{box} }

// A Copy is what one master holds under a key.
type Copy struct {
	Heard bool   // the master answered; if not, all else is empty
	Votes bool   // it may vote
	Type  string // as TYPE replies; empty: the key is absent
	Text  []byte // a string's value, which is a secret; nil for any other type
	TTL   time.Duration
	// Digest identifies the content without showing it: the first 8 hex digits of the
	// SHA-256 of a string, or of another type's canonical content.
	Digest string

	sum [sha256.Size]byte
}

// NoTTL is the TTL of a key that does not expire.
const NoTTL time.Duration = -1

// longestTTL is the longest that is shown, in milliseconds: 292 years. A master may have more.
const longestTTL = int64(math.MaxInt64 / time.Millisecond)

func (c Copy) there() bool { return c.Type != "" }

// Look asks all masters what they hold. It returns the copies of each key, by master.
func (r *Reader) Look(db int, keys [][]byte) [][]Copy {
	var frames []byte
	for _, key := range keys {
		frames = resp.AppendCommand(frames, []byte("PTTL"), key)
		frames = resp.AppendCommand(frames, []byte("DUMP"), key)
	}
	b := ballot.Poll(r.box, frames, ballot.Question[[]Copy]{
		Kind:    ballot.KindRead,
		DB:      db,
		Replies: 2 * len(keys),
		Parse:   parseCopies,
		Vote:    func([]Copy) ballot.Vote { return ballot.Granted },
		Decide: func(answers []quorum.Answer[[]Copy], _ time.Duration) ballot.Verdict {
			if quorum.Count(answers, func([]Copy) bool { return true }).Pending() > 0 {
				return ballot.Pending
			}
			return ballot.Won
		},
	})
	all := make([][]Copy, len(keys))
	for k := range keys {
		all[k] = make([]Copy, len(b.Answers))
		for i, a := range b.Answers {
			if a.State.Heard() {
				all[k][i] = a.Value[k]
				all[k][i].Heard, all[k][i].Votes = true, a.State == quorum.Answered
			}
		}
	}
	return all
}

// parseCopies reads PTTL and DUMP of each key.
func parseCopies(replies [][]byte) ([]Copy, error) {
	copies := make([]Copy, len(replies)/2)
	for k := range copies {
		left, ok := resp.ParseInteger(replies[2*k])
		if err := ballot.ReadAs(replies[2*k], ok); err != nil {
			return nil, err
		}
		reply := replies[2*k+1]
		if resp.IsError(reply) {
			return nil, ballot.ErrUnable // embedded masters cannot dump every type
		}
		dump, ok := resp.ParseBulk(reply)
		if !resp.IsNil(reply) && !ok {
			return nil, ballot.ReadAs(reply, false)
		}
		if !resp.IsNil(reply) && left != effect.NoKey { // it may expire between the two
			copies[k] = newCopy(dump, left)
		}
	}
	return copies, nil
}

func newCopy(dump []byte, left int64) Copy {
	v := rdb.Read(dump)
	c := Copy{Type: v.Kind.String(), TTL: NoTTL}
	if left >= 0 {
		c.TTL = time.Duration(min(left, longestTTL)) * time.Millisecond
	}
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

// Outstanding tells which masters owe this process an answer about a key, by master.
func (r *Reader) Outstanding(db int, key []byte) []bool {
	owing := r.box.Lanes.Outstanding(db, string(key))
	list := make([]bool, r.box.Masters.Size())
	for i := range list {
		list[i] = owing.Has(i)
	}
	return list
}

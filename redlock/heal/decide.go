package heal

import (
	"time"

	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/rdb"
)

// This file decides: from what the masters hold, what to write where. Everything here is a value or a
// pure function.

// copies are what the masters hold under a key at one moment.
type copies []quorum.Answer[effect.Image]

// A holding is the content that the most voting masters hold, and who they are.
type holding struct {
	content effect.Image
	by      quorum.Set
	left    int64 // milliseconds for which a quorum still holds it, or effect.NoExpiry
	quorum  bool  // a quorum holds it
}

// holding finds the most frequent content.
func (c copies) holding() holding {
	content, _ := quorum.Largest(c, effect.Image.There, effect.SameContent)
	h := holding{content: content, left: effect.NoKey}
	var left []int64
	for i, a := range c {
		if a.State == quorum.Answered && a.Value.There() && effect.SameContent(a.Value, content) {
			h.by |= 1 << i
			left = append(left, a.Value.PTTL)
		}
	}
	if n, held := quorum.AttainedTTL(len(c), left); held {
		h.quorum, h.left = true, n
	}
	return h
}

// lacking returns those targets that certainly have nothing under the key.
func (c copies) lacking(targets quorum.Set) (lack quorum.Set) {
	for i, a := range c {
		if targets.Has(i) && a.State.Heard() && a.Value.Absent() {
			lack |= 1 << i
		}
	}
	return lack
}

// A finding says whether a key must be healed.
type finding uint8

const (
	lacks  finding = iota // masters lack what a quorum holds
	whole                 // no target lacks it
	unheld                // no quorum holds one content
	brief                 // it ends before it is worth the work
	large                 // it is too large
)

func (f finding) String() string {
	return [...]string{"lacks", "whole", "unheld", "brief", "large"}[f]
}

// bounds say what is worth healing.
type bounds struct {
	least int64 // milliseconds that a copy must have left
	most  int64 // bytes of a payload
}

// A gap is a key that a quorum holds and some masters lack.
type gap struct {
	holding
	lack quorum.Set
}

// find tells whether a quorum holds a key that targets lack.
func (b bounds) find(c copies, targets quorum.Set) (gap, finding) {
	g := gap{c.holding(), c.lacking(targets)}
	switch {
	case g.lack == 0:
		return g, whole
	case !g.quorum:
		return g, unheld
	case g.left != effect.NoExpiry && g.left < b.least:
		return g, brief
	case int64(len(g.content.Dump)) > b.most:
		return g, large
	}
	return g, lacks
}

// still returns the part of a gap that is the same as at an earlier look: a quorum of the
// same masters has held the same content all the time.
func (g gap) still(before gap, masters int) (gap, bool) {
	g.lack &= before.lack
	ok := g.lack != 0 && effect.SameContent(g.content, before.content) && (g.by&before.by).Len() >= quorum.Size(masters)
	return g, ok
}

// A patch is what is written where.
type patch struct {
	lives  time.Duration        // the TTL of the copies; 0: none
	writes map[int]effect.Image // by master: the copy that it is to hold, by its own clock
	until  map[int]int64        // by master: its time after which it writes nothing
}

// patch returns the copies for a gap that a look of the given duration showed. No copy ends
// before those of the quorum, because the holder relies on that time, and the others may
// forget. Nobody knows at which moment of the look a master answered, so a copy may end
// later, by twice the duration of the look.
func (g gap) patch(seen copies, took, patience time.Duration) patch {
	content := g.content
	if text, ok := rdb.StringValue(content.Dump); ok { // a payload that older servers can read
		content.Dump = rdb.Dump(rdb.Value{Kind: rdb.String, Items: [][]byte{text}})
	}
	p := patch{writes: map[int]effect.Image{}, until: map[int]int64{}}
	left := int64(effect.NoExpiry)
	if g.left != effect.NoExpiry {
		left = g.left + ceilMillis(took)
		p.lives = time.Duration(left) * time.Millisecond
	}
	for i := range seen {
		if g.lack.Has(i) {
			now := seen[i].Value.Now
			p.writes[i] = effect.Image{Dump: content.Dump, PTTL: left, Now: now}
			p.until[i] = now + patience.Milliseconds()
		}
	}
	return p
}

func ceilMillis(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

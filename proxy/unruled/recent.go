package unruled

import "redlock-proxy/proxy/scripts"

// A taken is a key that somebody took.
type taken struct {
	key    uint64 // a hash of the database and the key; 0: this place is free
	script uint64 // the ID of the text that took it
	client int64
	until  int64 // Unix time in ms
	how    acquire
	lasts  bool // it has a TTL, so a DEL by the same client ends it early
}

// An acquire is a way to take a key.
type acquire uint8

const (
	bySet acquire = iota
	bySetNX
	byText
)

func (a acquire) text() string {
	return [...]string{bySet: "SET NX", bySetNX: "SETNX", byText: "a script that takes it"}[a]
}

// A release is a way to give a key back.
type release uint8

const (
	byDeletion release = iota
	byComparison
	byScript
)

func (r release) text(s scripts.Shape) string {
	switch {
	case r == byDeletion:
		return "DEL"
	case r == byComparison:
		return "a comparing deletion"
	case s.ID == 0:
		return "a script of unknown text"
	case s.Deletes:
		return "a script that gives it back"
	}
	return "a script that extends it"
}

// endsBy tells whether a command belongs to a key that was taken so.
func (t *taken) endsBy(how release, c Command) bool {
	s := c.Script
	switch {
	case how == byComparison:
		return true
	case how == byDeletion:
		return t.how != byText && t.lasts && t.client == c.Client.ID()
	case t.how == byText:
		return s.ID != t.script && s.Deletes
	}
	return s.ID == 0 || s.Deletes || s.Extends
}

const (
	sets = 1024
	ways = 4 // places in a set
)

// recent holds the keys that were taken of late. A key has its place in one set. Where there is no room, the key
// that ends first makes room.
type recent [sets][ways]taken

// find returns the entry of a key that has not ended, or nil.
func (r *recent) find(key uint64, now int64) *taken {
	set := &r[key%sets]
	for i := range set {
		if set[i].key == key && set[i].until > now {
			return &set[i]
		}
	}
	return nil
}

// add puts t in. A command changes nothing while the key is there: it was refused. A script replaces what is there,
// because one that releases may look like one that takes, and belongs to the next that takes.
func (r *recent) add(t taken, now int64) {
	if old := r.find(t.key, now); old != nil {
		if t.how == byText && old.how == byText {
			*old = t
		}
		return
	}
	set := &r[t.key%sets]
	place := &set[0]
	for i := range set {
		if set[i].key == t.key { // it has ended
			place = &set[i]
			break
		}
		if set[i].until < place.until {
			place = &set[i]
		}
	}
	*place = t
}

// unreadAfter is for how long a text stays unknown before it counts, in ms. A client sends it after NOSCRIPT, so it is
// longer than an answer takes.
const unreadAfter = 10_000

// unread remembers some scripts whose texts are unknown.
type unread struct {
	seen  [16]struct{ sha, since uint64 }
	lasts bool // one of them was run for long enough
}

// add tells whether this script was run for long enough, and whether it made lasts true.
func (u *unread) add(sha uint64, now int64) (lasts, first bool) {
	place := &u.seen[sha%uint64(len(u.seen))]
	if place.sha != sha {
		place.sha, place.since = sha, uint64(now)
	}
	lasts = uint64(now)-place.since >= unreadAfter
	first = lasts && !u.lasts
	u.lasts = u.lasts || lasts
	return lasts, first
}

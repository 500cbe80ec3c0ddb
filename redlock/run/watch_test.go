package run

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/rdb"
)

// imageOf is the image of a key that has a string, a hash with a count ("holder:1"), a list
// ("[element"), a sorted set ("<member"), or nothing ("-"). It may have so many milliseconds
// left behind a slash.
func imageOf(t *testing.T, word string) effect.Image {
	t.Helper()
	if word == "-" {
		return effect.Image{PTTL: effect.NoKey, Now: 1000}
	}
	text, left, expires := strings.Cut(word, "/")
	v := rdb.Value{Kind: rdb.String, Items: [][]byte{[]byte(text)}}
	if holder, count, is := strings.Cut(text, ":"); is {
		v = rdb.Value{Kind: rdb.Hash, Items: [][]byte{[]byte(holder), []byte(count)}}
	}
	switch text[0] {
	case '[':
		v.Kind = rdb.List
	case '<':
		v.Kind, v.Scores = rdb.SortedSet, []float64{1}
	}
	i := effect.Image{Dump: rdb.Dump(v), PTTL: effect.NoExpiry, Now: 1000}
	if expires {
		n, err := strconv.ParseInt(left, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		i.PTTL = n
	}
	return i
}

// resultOf is what a run made of keys, each "before>after".
func resultOf(t *testing.T, reply, keys string) effect.Result {
	t.Helper()
	x := effect.Result{Reply: []byte(reply)}
	for _, key := range strings.Fields(keys) {
		before, after, _ := strings.Cut(key, ">")
		x.Before, x.After = append(x.Before, imageOf(t, before)), append(x.After, imageOf(t, after))
	}
	return x
}

// A transaction goes only to masters that showed what a quorum agrees on under each of its watches.
func TestWhoIsAskedBehindWatches(t *testing.T) {
	me, you := []effect.Image{imageOf(t, "me")}, []effect.Image{imageOf(t, "you")}
	one := &Watch{keys: [][]byte{[]byte("one")}, images: map[int][]effect.Image{}, agreed: me}
	two := &Watch{keys: [][]byte{[]byte("two")}, images: map[int][]effect.Image{0: me, 1: you, 2: me, 3: me}, agreed: me}
	for master, images := range [][]effect.Image{me, me, you, nil} {
		state := quorum.Answered
		if images == nil {
			state = quorum.Unknown
		}
		one.note(master, quorum.Answer[effect.Result]{State: state, Value: effect.Result{After: images}})
	}
	if len(one.images) != 3 {
		t.Errorf("%d masters have shown their keys", len(one.images))
	}
	r := &Request{Watches: []*Watch{one, two}}
	for master := range 4 {
		if asked := r.guard().Frames(master) != nil; asked != (master == 0) {
			t.Errorf("master %d is asked: %v", master, asked)
		}
	}
}

// A transaction is aborted in the words of its client's protocol. If only keys have changed
// that the client does not watch, its answer is none.
func TestWhatAnAbortedTransactionIsTold(t *testing.T) {
	changed, same := []string{"+OK\r\n", ":0\r\n"}, []string{"+OK\r\n", ":1\r\n"}
	for _, row := range []struct {
		name    string
		guards  [][]string
		resp3   bool
		deletes bool
		want    string
	}{
		{"watched", [][]string{changed}, false, false, "*-1\r\n"},
		{"watched, RESP3", [][]string{changed}, true, false, "_\r\n"},
		{"watched, beside a deletion", [][]string{changed, same}, false, true, "*-1\r\n"},
		{"deleted only", [][]string{same, changed}, false, true, ""},
		{"one of two watched", [][]string{same, changed}, false, false, "*-1\r\n"},
	} {
		r := &Request{RESP3: row.resp3}
		if row.deletes {
			r.Deletes = [][]byte{[]byte("deleted")}
		}
		var replies [][]byte
		for _, reply := range slices.Concat(row.guards...) {
			replies = append(replies, []byte(reply))
		}
		passes, x, err := r.guard().Read(replies)
		if passes || err != nil || !x.Aborted || string(x.Reply) != row.want {
			t.Errorf("%s: %v, %v, %+v", row.name, passes, err, x)
		}
	}
}

// Masters that do not show their keys must not agree that these are missing.
func TestALookThatShowsNothingIsNoVote(t *testing.T) {
	if _, err := shown(effect.Result{Failed: true}, nil); err != ballot.ErrUnable {
		t.Errorf("a master that refuses: %v", err)
	}
	if _, err := shown(effect.Result{}, io.ErrUnexpectedEOF); err != io.ErrUnexpectedEOF {
		t.Errorf("what cannot be read: %v", err)
	}
	if _, err := shown(resultOf(t, "", "->-"), nil); err != nil {
		t.Errorf("a missing key: %v", err)
	}
}

// Only keys that the client does not watch are watched for it.
func TestUnwatchedKeys(t *testing.T) {
	r := &Request{Watches: []*Watch{{keys: [][]byte{[]byte("a")}}, {keys: [][]byte{[]byte("b")}}}}
	if got := bytes.Join(r.unwatched([][]byte{[]byte("a"), []byte("c"), []byte("b")}), []byte(" ")); string(got) != "c" {
		t.Errorf("%q", got)
	}
}

func TestAWatchCountsWhatItHolds(t *testing.T) {
	w := &Watch{keys: [][]byte{make([]byte, 1000)}, images: map[int][]effect.Image{0: {{Dump: make([]byte, 3000)}}}}
	if size := w.Size(); size < 4000 || size > 5000 {
		t.Errorf("%d bytes", size)
	}
}

// A transaction follows only if its guard says yes. A reply that is no answer does not
// mean no.
func TestGuardsThatDoNotSay(t *testing.T) {
	const ok, yes, no, refused = "+OK\r\n", ":1\r\n", ":0\r\n", "-NOPERM you may not\r\n"
	for _, row := range []struct {
		replies []string
		same    bool
		fails   bool
	}{
		{[]string{ok, yes}, true, false},
		{[]string{ok, no}, false, false},
		{[]string{ok, yes, ok, yes}, true, false},
		{[]string{ok, no, ok, yes}, false, false},
		{[]string{refused, yes}, false, true},
		{[]string{ok, refused}, false, true},
		{[]string{ok, yes, refused, yes}, false, true},
		{[]string{ok, "$-1\r\n"}, false, true},
	} {
		var replies [][]byte
		for _, r := range row.replies {
			replies = append(replies, []byte(r))
		}
		if same, err := stillSame(replies); same != row.same || (err != nil) != row.fails {
			t.Errorf("%q: %v, %v", row.replies, same, err)
		}
	}
}

// A transaction that deletes a lock without comparing spares one that came after its first look.
func TestALaterLockIsSpared(t *testing.T) {
	held := func(text string) effect.Image {
		return effect.Image{Dump: []byte(text), PTTL: effect.NoExpiry}
	}
	keys := [][]byte{[]byte("lock"), []byte("another")}
	for _, row := range []struct {
		name        string
		first, then []effect.Image
		goesOn      bool
	}{
		{"as before", []effect.Image{held("me"), held("1")}, []effect.Image{held("me"), held("1")}, true},
		{"ended", []effect.Image{held("me"), held("1")}, []effect.Image{effect.Missing, held("1")}, true},
		{"another lock", []effect.Image{held("me"), held("1")}, []effect.Image{held("you"), held("1")}, false},
		{"a lock where there was none", []effect.Image{effect.Missing, held("1")}, []effect.Image{held("you"), held("1")}, false},
		{"another of its locks", []effect.Image{held("me"), held("1")}, []effect.Image{held("me"), held("2")}, false},
	} {
		first, then := &Watch{keys: keys, masters: 1, images: map[int][]effect.Image{0: row.first}}, &Watch{keys: keys, agreed: row.then}
		if goesOn := then.showsNoOther(first); goesOn != row.goesOn {
			t.Errorf("%s: it goes on: %v", row.name, goesOn)
		}
	}
}

// A try that follows a deletion spares a lock that no quorum can have held before. It goes on if the
// lock is the one that was put back, even if a master that held it did not answer.
func TestATryAfterADeletion(t *testing.T) {
	images := func(masters string) (all [][]effect.Image) {
		for _, master := range strings.Fields(masters) {
			if master == "away" {
				all = append(all, nil)
				continue
			}
			all = append(all, []effect.Image{imageOf(t, master)})
		}
		return all
	}
	for _, row := range []struct {
		met, now string
		goesOn   bool
	}{
		{"A A A A A", "A", true},
		{"A - away", "A", true},
		{"A A away - -", "A", true},
		{"A A B B away", "A", true},
		{"A A - - -", "A", false},
		{"A B - - away", "C", false},
		{"- - - away away", "C", false},
		{"A away away", "A", false},
		{"A away away", "C", false},
		{"A:1 A:1 A:2 A:2 -", "A:1", true}, // a re-entrant lock whose counts differ
		{"A:1 A:1 B:1 B:1 -", "C:1", false},
		{"A B C - -", "-", true},
		{"[A [A [A - -", "[B", true}, // a queue
		{"<A <A <A - -", "<B", true},
	} {
		e := &earlier{}
		var first []quorum.Answer[effect.Result]
		for _, met := range images(row.met) {
			first = append(first, quorum.Answer[effect.Result]{Value: effect.Result{Before: met}})
		}
		e.meet(first)
		e.meet(make([]quorum.Answer[effect.Result], 5)) // a later try does not count
		if goesOn := !e.mustSpare(0, imageOf(t, row.now)); goesOn != row.goesOn {
			t.Errorf("%s, and now %s: it goes on: %v", row.met, row.now, goesOn)
		}
	}
}

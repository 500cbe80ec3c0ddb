package run

import (
	"strings"
	"testing"

	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/rdb"
)

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
			switch master {
			case "away":
				all = append(all, nil)
			case "-":
				all = append(all, []effect.Image{effect.Missing})
			default:
				v := rdb.Value{Kind: rdb.String, Items: [][]byte{[]byte(master)}}
				if holder, count, is := strings.Cut(master, ":"); is {
					v = rdb.Value{Kind: rdb.Hash, Items: [][]byte{[]byte(holder), []byte(count)}}
				}
				all = append(all, []effect.Image{{Dump: rdb.Dump(v), PTTL: effect.NoExpiry}})
			}
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
	} {
		e := &earlier{met: images(row.met)}
		if goesOn := e.mayHaveHad(0, images(row.now)[0][0]); goesOn != row.goesOn {
			t.Errorf("%s, and now %s: it goes on: %v", row.met, row.now, goesOn)
		}
	}
}

package run

import (
	"slices"
	"testing"

	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/rdb"
)

// A fair lock is taken by deleting its queue, so only other deletions make a guard
// necessary. The guard is about the key on all masters.
func TestALaterTryIsGuardedWhereALockWasDeleted(t *testing.T) {
	image := func(kind rdb.Kind, items ...string) effect.Image {
		v := rdb.Value{Kind: kind, Scores: make([]float64, len(items))}
		for _, item := range items {
			v.Items = append(v.Items, []byte(item))
		}
		return effect.Image{Dump: rdb.Dump(v), PTTL: effect.NoExpiry}
	}
	keys := [][]byte{[]byte("lock"), []byte("queue")}
	for _, row := range []struct {
		name    string
		lock    effect.Image
		deleted int // the key that master 0 deleted
		guarded int
	}{
		{"a string", image(rdb.String, "me"), 0, 1},
		{"a hash", image(rdb.Hash, "me", "1"), 0, 1},
		{"holders", image(rdb.Hash, "me", "1", "you", "1"), 0, 1},
		{"a queue", image(rdb.String, "me"), 1, 0},
		{"a list of tokens", image(rdb.List, "1", "2"), 0, 0},
		{"a set of tokens", image(rdb.Set, "1", "2"), 0, 0},
	} {
		before := []effect.Image{row.lock, image(rdb.List, "you")}
		after := slices.Clone(before)
		after[row.deleted] = effect.Missing
		var all tried
		all.note(0, effect.Result{Before: before, After: after}, before)
		all.note(1, effect.Result{Before: before, After: before}, before)
		all.note(2, effect.Result{}, nil)
		for master, want := range []effect.Image{row.lock, row.lock, effect.Missing} {
			locks, left := all.guarded(master, keys)
			if len(locks) != row.guarded || len(left) != row.guarded {
				t.Errorf("%s: on master %d %q are guarded", row.name, master, locks)
			} else if row.guarded == 1 && (string(locks[0]) != "lock" || !left[0].UnchangedSince(want)) {
				t.Errorf("%s: master %d must have %v under %q", row.name, master, left[0], locks[0])
			}
		}
	}
}

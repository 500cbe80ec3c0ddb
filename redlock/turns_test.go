package redlock

import (
	"slices"
	"testing"
	"testing/synctest"
)

// Who goes next goes before those that wait, and behind others that go next.
func TestTurnsOfHoldersComeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns()
		pass, _ := turns.take(t.Context(), 0, false, "k")
		var order []string
		for _, who := range []struct {
			name string
			next bool
		}{{"a", false}, {"b", true}, {"c", false}, {"d", true}} {
			go func() {
				pass, err := turns.take(t.Context(), 0, who.next, "k", "later")
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, who.name)
				pass()
			}()
			synctest.Wait()
		}
		pass()
		synctest.Wait()
		if !slices.Equal(order, []string{"b", "d", "a", "c"}) {
			t.Errorf("%q", order)
		}
	})
}

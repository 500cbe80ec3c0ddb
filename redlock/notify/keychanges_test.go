package notify

import (
	"slices"
	"testing"
	"time"

	"redlock-proxy/redlock/resp"
)

func TestKeyChanges(t *testing.T) {
	key := func(name string) keyChange { return keyChange{key: name} }
	type copy struct {
		at     int
		change keyChange
		master int
	}
	rows := []struct {
		name   string
		copies []copy
		told   []copy // without a master
	}{
		{"at the quorum, and once more for the rest",
			[]copy{{0, key("k"), 0}, {1, key("k"), 1}, {2, key("k"), 2}, {3, key("k"), 3}, {4, key("k"), 4}},
			[]copy{{2, key("k"), 0}, {18, key("k"), 0}}},
		{"after the grace when the rest does not come",
			[]copy{{0, key("k"), 0}, {1, key("k"), 1}},
			[]copy{{15, key("k"), 0}}},
		{"a quorum that comes late is told",
			[]copy{{0, key("k"), 0}, {100, key("k"), 1}, {101, key("k"), 2}},
			[]copy{{15, key("k"), 0}, {115, key("k"), 0}}},
		{"one master alone is no quorum, however often it tells",
			[]copy{{0, key("k"), 0}, {1, key("k"), 0}, {2, key("k"), 0}},
			[]copy{{15, key("k"), 0}}},
		{"keys are apart",
			[]copy{{0, key("k"), 0}, {1, key("l"), 1}, {2, key(""), 2}, {3, keyChange{any: true}, 3}},
			[]copy{{15, key("k"), 0}, {16, key("l"), 0}, {17, key(""), 0}, {18, keyChange{any: true}, 0}}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			var told []copy
			now := 0
			c := newKeyChanges(5, func(k keyChange) { told = append(told, copy{at: now, change: k}) })
			begin := time.Unix(1000, 0)
			for now = range 300 {
				at := begin.Add(time.Duration(now) * time.Millisecond)
				if due, ok := c.next(); ok && !at.Before(due) {
					c.settle(at)
				}
				for _, news := range row.copies {
					if news.at == now {
						c.count(news.change, news.master, at)
					}
				}
			}
			if !slices.Equal(told, row.told) {
				t.Errorf("told %v, want %v", told, row.told)
			}
			if len(c.bursts)+len(c.waiting) > 0 {
				t.Errorf("%d changes are remembered for ever", len(c.bursts)+len(c.waiting))
			}
		})
	}
}

func TestTooManyKeyChangesAreToldAtOnce(t *testing.T) {
	told := 0
	c := newKeyChanges(5, func(keyChange) { told++ })
	for i := range maxBursts + 10 {
		c.count(keyChange{key: string(resp.Decimal(int64(i)))}, 0, time.Unix(1000, 0))
	}
	if told != 10 || len(c.waiting) != maxBursts {
		t.Errorf("%d told, %d waiting", told, len(c.waiting))
	}
}

package events

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// testStart is the beginning of a minute, after the Journal began.
var testStart = time.Now().Truncate(time.Minute).Add(time.Minute)

func testJournal() *Journal { return New(slog.New(slog.DiscardHandler)) }

func testClient(id int64, name string) *Client {
	c := NewClient(id, fmt.Sprintf("10.0.0.%d:1", id), testStart)
	c.Introduce(Identity{Name: name, RESP: 2})
	return c
}

// The holder is the client that took the lock here, as long as the masters hold its value.
func TestHolder(t *testing.T) {
	j := testJournal()
	a, b := testClient(1, "a"), testClient(2, "b")
	key := []byte("lock:a")
	note := func(c *Client, v Verdict, value string, ttl time.Duration) {
		e := KeyEvent{Key: key, Client: c, Verdict: v, TTL: ttl, At: testStart}
		if value != "" {
			e.Value = []byte(value)
		}
		j.Note(e)
	}
	holder := func(db int, value string, after time.Duration) string {
		var is []byte
		if value != "" {
			is = []byte(value)
		}
		h, known := j.Holder(db, key, is, testStart.Add(after))
		if known && !h.Since.Equal(testStart) {
			t.Errorf("since %v", h.Since)
		}
		return h.Client.Name
	}
	for _, step := range []struct {
		do          func()
		what, holds string
		db          int
		after       time.Duration
		want        string
	}{
		{nil, "nobody took it", "token", 0, 0, ""},
		{func() { note(a, Granted, "token", time.Second) }, "a took it", "token", 0, 0, "a"},
		{nil, "in another database", "token", 1, 0, ""},
		{func() { note(b, Refused, "", 0) }, "b was refused", "token", 0, 0, "a"},
		{nil, "another proxy's client took it since", "other", 0, 0, ""},
		{nil, "its value is there after the TTL: it was extended elsewhere", "token", 0, time.Hour, "a"},
		{func() { note(a, Released, "", 0) }, "a released it", "token", 0, 0, ""},
		{func() { note(b, Granted, "", time.Second) }, "a script of b took it", "any", 0, 0, "b"},
		{nil, "until its TTL ends", "any", 0, 2 * time.Second, ""},
		{func() { note(b, Extended, "", time.Minute) }, "b extended it", "any", 0, 2 * time.Second, "b"},
		{func() { note(b, Granted, "", 0) }, "a script of b took it for ever", "", 0, time.Hour, "b"},
		{func() { b.Introduce(Identity{Name: "later"}) }, "b has another name now", "", 0, 0, "later"},
		{func() { b.Leave() }, "b has left", "", 0, 0, "later"},
	} {
		if step.do != nil {
			step.do()
		}
		if got := holder(step.db, step.holds, step.after); got != step.want {
			t.Errorf("%s: %q, not %q", step.what, got, step.want)
		}
	}
	var verdicts []string
	for _, m := range j.Verdicts(0, key) {
		verdicts = append(verdicts, m.Client.Name+" "+m.Verdict.String())
	}
	if got, want := strings.Join(verdicts, ", "), "later granted, later extended, later granted, a released"; got != want {
		t.Errorf("the last verdicts: %q, not %q", got, want)
	}
	if h, _ := j.Holder(0, key, nil, testStart); !h.Client.Gone {
		t.Error("nobody knows that b has left")
	}
}

// However many keys there are, the memory is bounded, and held locks stay longest.
func TestMostKeys(t *testing.T) {
	j := testJournal()
	c := testClient(1, "a")
	for n := range 1000 {
		j.Note(KeyEvent{Key: fmt.Appendf(nil, "held:%d", n), Client: c, Verdict: Granted, At: testStart})
	}
	for n := range 2 * mostKeys {
		j.Note(KeyEvent{Key: fmt.Appendf(nil, "lock:%d", n), Client: c, Verdict: Released, At: testStart.Add(time.Second)})
	}
	slots := 0
	for i := range j.keys {
		slots += len(j.keys[i].slots)
	}
	if slots != mostKeys {
		t.Errorf("%d slots, not %d", slots, mostKeys)
	}
	for n := range 1000 {
		if _, known := j.Holder(0, fmt.Appendf(nil, "held:%d", n), nil, testStart); !known {
			t.Fatalf("the holder of held:%d is forgotten", n)
		}
	}
	for n := range mostKeys / 4 {
		j.Note(KeyEvent{Key: fmt.Appendf(nil, "lock:%d", n), Client: c, Verdict: Granted, At: testStart.Add(time.Minute)})
	}
	if _, known := j.Holder(0, fmt.Appendf(nil, "lock:%d", mostKeys/4-1), nil, testStart.Add(time.Minute)); !known {
		t.Error("the newest key is forgotten")
	}
}

func TestRememberingDoesNotAllocate(t *testing.T) {
	j := testJournal()
	c := testClient(1, "a")
	key, value := []byte("lock:a"), []byte("0123456789abcdef")
	n := testing.AllocsPerRun(100, func() {
		c.Begin("set", key, testStart)
		j.Note(KeyEvent{Key: key, Client: c, Verdict: Granted, Value: value, At: testStart})
		j.Note(KeyEvent{Key: key, Client: c, Verdict: Refused, At: testStart})
		c.End()
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestHottest(t *testing.T) {
	j := testJournal()
	refuse := func(key string, times int, after time.Duration) {
		for range times {
			j.Note(KeyEvent{DB: 2, Key: []byte(key), Verdict: Refused, At: testStart.Add(after)})
		}
	}
	hottest := func(n int, after time.Duration) string {
		var list []string
		for _, k := range j.Hottest(n, testStart.Add(after), func(_ int, key []byte) bool { return string(key) != "hidden" }) {
			list = append(list, fmt.Sprintf("%d/%s:%d", k.DB, k.Key, k.Refusals-k.Excess))
		}
		return strings.Join(list, " ")
	}
	refuse("first", 3, 0)
	refuse("second", 2, 0)
	refuse("hidden", 9, 0)
	refuse("second", 4, 4*time.Minute)
	j.Note(KeyEvent{Key: []byte("granted"), Verdict: Granted, At: testStart})
	for _, row := range []struct {
		n     int
		after time.Duration
		want  string
	}{
		{10, 4 * time.Minute, "2/second:6 2/first:3"},
		{1, 4 * time.Minute, "2/second:6"},
		{10, 6 * time.Minute, "2/second:4"},
		{10, 20 * time.Minute, ""},
	} {
		if got := hottest(row.n, row.after); got != row.want {
			t.Errorf("%d after %v: %q, not %q", row.n, row.after, got, row.want)
		}
	}
	// A storm on one key is found among many keys that are refused once.
	for n := range 10_000 {
		refuse(fmt.Sprintf("%s%d", strings.Repeat("k", longestKept), n), 1, time.Hour)
		if n%10 == 0 {
			refuse("storm", 1, time.Hour)
		}
	}
	if top := j.Hottest(1, testStart.Add(time.Hour), func(int, []byte) bool { return true }); len(top) != 1 || top[0].Key != "storm" || top[0].Refusals < 1000 {
		t.Errorf("%+v", top)
	}
	for i := range j.hot {
		if len(j.hot[i].keys) > hotKeys {
			t.Errorf("%d keys in a shard", len(j.hot[i].keys))
		}
	}
}

func TestSlowCommands(t *testing.T) {
	j := testJournal()
	c := testClient(1, "a")
	for n := range 2 * mostSlow {
		j.NoteSlow(SlowCommand{Took: time.Duration(n) * time.Millisecond, Command: "set", Key: strings.Repeat("k", 2*longestKept)}, c)
	}
	list := j.Slow(1000)
	if len(list) != mostSlow || list[0].ID != 2*mostSlow-1 || list[mostSlow-1].ID != mostSlow {
		t.Fatalf("%d commands, from %d to %d", len(list), list[0].ID, list[len(list)-1].ID)
	}
	if first := list[0]; first.Client.Name != "a" || len(first.Key) != longestKept || first.Took != time.Duration(first.ID)*time.Millisecond {
		t.Errorf("%+v", first)
	}
	j.ForgetSlow()
	j.NoteSlow(SlowCommand{Command: "get"}, nil)
	if list := j.Slow(10); len(list) != 1 || list[0].ID != 2*mostSlow || list[0].Client.Address != "" {
		t.Errorf("%+v", list)
	}
}

func TestClient(t *testing.T) {
	j, a := testJournal(), testClient(1, "a")
	j.Note(KeyEvent{Key: []byte("x"), Client: a, Verdict: Granted, At: testStart})
	a.Begin("set", []byte("lock:a"), testStart)
	if info := a.Info(); info.Name != "a" || info.Granted != 1 || info.Command != "set" || info.Key != "lock:a" || info.Gone {
		t.Errorf("%+v", info)
	}
	a.End()
	if info := a.Info(); info.Command != "" || info.Key != "" {
		t.Errorf("%+v", info)
	}
	a.Begin("set", []byte("lock:a"), testStart)
	a.Leave()
	if info := a.Info(); a.key != nil || info.Command != "" || !info.Gone {
		t.Errorf("the client has left: %+v", info)
	}
	var nobody *Client
	nobody.Introduce(Identity{})
	nobody.Begin("set", nil, testStart)
	nobody.End()
}

// A name or a key that is cut does not keep the rest of it in memory.
func TestCutTextsAreCopied(t *testing.T) {
	j, long := testJournal(), strings.Repeat("n", 2*longestKept)
	c := testClient(1, long)
	j.NoteSlow(SlowCommand{Key: long}, c)
	for what, kept := range map[string]string{"name": c.Info().Name, "key": j.Slow(1)[0].Key} {
		if kept != long[:longestKept] || unsafe.StringData(kept) == unsafe.StringData(long) {
			t.Errorf("the %s is %q, a piece of the long one", what, kept)
		}
	}
}

// Clients that leave are known for a while. Of those that are connected none is forgotten.
func TestDepartedClientsAreForgotten(t *testing.T) {
	j := testJournal()
	stays := testClient(1, "stays")
	note := func(c *Client) {
		j.Note(KeyEvent{Key: []byte("lock:a"), Client: c, Verdict: Granted, At: testStart})
	}
	note(stays)
	const come = 4 * mostDeparted
	for id := int64(2); id < come; id++ {
		c := testClient(id, "departed")
		note(c)
		note(c)
		c.Leave()
	}
	for id, want := range map[int64]string{
		0:                     `0 "" gone false`,
		1:                     `1 "stays" gone false`,
		come / 2:              fmt.Sprintf(`%d "" gone true`, come/2),
		come - mostDeparted/2: fmt.Sprintf(`%d "departed" gone true`, come-mostDeparted/2),
		come - 1:              fmt.Sprintf(`%d "departed" gone true`, come-1),
	} {
		client := j.clients.info(id)
		if got := fmt.Sprintf("%d %q gone %v", client.ID, client.Name, client.Gone); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if h, _ := j.Holder(0, []byte("lock:a"), nil, testStart); h.Client.ID != come-1 || h.Client.Name != "departed" {
		t.Errorf("the holder is %+v", h.Client)
	}
	if known := len(j.clients.byID); known > mostDeparted+1 || known != len(j.clients.line) {
		t.Errorf("%d clients are known, %d in line", known, len(j.clients.line))
	}
}

// A hold lasts from the grant to the release, for each key of each database.
func TestHolds(t *testing.T) {
	j, a, b := testJournal(), testClient(1, "a"), testClient(2, "b")
	note := func(db int, verdict Verdict, second int) (time.Duration, bool) {
		from := a
		if verdict == Refused {
			from = b
		}
		return j.Note(KeyEvent{DB: db, Key: []byte("lock:a"), Client: from, Verdict: verdict, TTL: time.Second, At: testStart.Add(time.Duration(second) * time.Second)})
	}
	for _, row := range []struct {
		db      int
		verdict Verdict
		second  int
		lasted  time.Duration
		known   bool
	}{
		{0, Released, 0, 0, false}, // nobody took it here
		{0, Granted, 1, 0, true},
		{1, Granted, 2, 0, true},
		{0, Refused, 3, 0, false},
		{0, Extended, 3, 0, false},
		{0, Released, 4, 3 * time.Second, true},
		{0, Released, 5, 0, false},
		{1, Released, 5, 3 * time.Second, true},
		{0, Granted, 10, 0, true}, // it ends by its TTL
		{0, Granted, 20, 0, true},
		{0, Released, 21, time.Second, true},
	} {
		if lasted, known := note(row.db, row.verdict, row.second); known != row.known || known && lasted != row.lasted {
			t.Errorf("%+v: %v %v", row, lasted, known)
		}
	}
}

// A wait lasts from the first try in vain to the grant, for each client. A client that has
// given up begins anew. A client that tries to take many locks is known to wait for the last ones.
func TestWaits(t *testing.T) {
	j, a, b := testJournal(), testClient(1, "a"), testClient(2, "b")
	try := func(c *Client, key string, verdict Verdict, began, ended int) time.Duration {
		lasted, _ := j.Note(KeyEvent{
			Key: []byte(key), Client: c, Verdict: verdict,
			At: testStart.Add(time.Duration(ended) * time.Second), Took: time.Duration(ended-began) * time.Second,
		})
		return lasted
	}
	takes := func(what string, c *Client, key string, began, ended int, want time.Duration) {
		t.Helper()
		if waited := try(c, key, Granted, began, ended); waited != want*time.Second {
			t.Errorf("%s: %v, not %v s", what, waited, want)
		}
	}
	for s := range 3 {
		try(a, "lock:a", Refused, 10*s, 10*s+1)
	}
	try(b, "lock:a", Refused, 20, 20)
	takes("after three tries", a, "lock:a", 30, 31, 31)
	takes("at once", a, "lock:a", 40, 41, 1)
	takes("it had given up", b, "lock:a", 100, 102, 2)
	try(b, "lock:a", Refused, 200, 200)
	try(b, "lock:a", Refused, 300, 300)
	takes("it began anew", b, "lock:a", 310, 310, 10)
	try(nil, "lock:a", Refused, 400, 400)
	takes("an unknown client", nil, "lock:a", 410, 411, 1)
	for n := range mostTries + 1 {
		try(a, fmt.Sprint("lock:", n), Refused, 500, 500)
	}
	takes("the last of many locks", a, fmt.Sprint("lock:", mostTries), 501, 502, 2)
	takes("the first of many locks", a, "lock:0", 502, 502, 0)
	if len(a.tries) > mostTries {
		t.Errorf("%d tries are remembered", len(a.tries))
	}
}

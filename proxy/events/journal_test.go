package events

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/redlock"
)

// testStart is the beginning of a minute, after the Journal began.
var testStart = time.Now().Truncate(time.Minute).Add(time.Minute)

func testJournal() *Journal { return New(slog.New(slog.DiscardHandler)) }

func testClient(id int64, name string) *Client {
	c := NewClient(id, fmt.Sprintf("10.0.0.%d:1", id), testStart)
	c.Introduce(Identity{Name: name, RESP: 2})
	return c
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

// What is remembered and counted of each command, each vote and each message takes no memory.
func TestCountingDoesNotAllocate(t *testing.T) {
	j, c := testJournal(), testClient(1, "a")
	m, err := NewMetrics(prometheus.NewRegistry(), Names{Build: []string{"", "", ""}})
	if err != nil {
		t.Fatal(err)
	}
	m.ShowSettings(Configured{Rules: []string{"lock:*"}})
	observer := j.Observer(m)
	key, value := []byte("lock:a"), []byte("0123456789abcdef")
	count := func() {
		c.Begin("set", key, testStart)
		j.Note(KeyEvent{Key: key, Client: c, Verdict: Granted, Value: value, At: testStart})
		j.Note(KeyEvent{Key: key, Client: c, Verdict: Refused, At: testStart})
		c.End()
		observer.Voted("m1", redlock.Granted, time.Millisecond, testStart)
		j.NoteCommand(redlock.KindAcquire, redlock.Won, testStart)
		m.WokenUp(2, 1)
		m.Refused("CROSSLOCK")
		m.Refused("NOTCOUNTED")
		m.LockWaited("lock:*", time.Second)
		m.LockHeld("lock:*", time.Second)
	}
	count()
	if n := testing.AllocsPerRun(100, count); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A storm on one key is found among many keys that are refused once.
func TestAStormIsFound(t *testing.T) {
	j := testJournal()
	refuse := func(key string) {
		j.Note(KeyEvent{Key: []byte(key), Verdict: Refused, At: testStart})
	}
	for n := range 10_000 {
		refuse(fmt.Sprintf("%s%d", strings.Repeat("k", longestKept), n))
		if n%10 == 0 {
			refuse("storm")
		}
	}
	if top := j.Hottest(1, testStart, func(int, []byte) bool { return true }); len(top) != 1 || top[0].Key != "storm" || top[0].Refusals < 1000 {
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

// The last events are kept, and each cause of a quarantine has a text.
func TestEventsAreBounded(t *testing.T) {
	j := testJournal()
	for i := range 2 * mostEvents {
		j.NoteReload(strconv.Itoa(i))
	}
	if list := j.Events(); len(list) != mostEvents || list[0].Text != strconv.Itoa(2*mostEvents-1) {
		t.Errorf("%d events, the last is %v", len(list), list[0])
	}
}

// Nobody knows the client of some commands. A client is known to wait for so many locks at most.
func TestTriesAreBounded(t *testing.T) {
	var nobody *Client
	nobody.Introduce(Identity{})
	nobody.Begin("set", nil, testStart)
	nobody.End()
	j, c := testJournal(), testClient(1, "a")
	for n := range 2 * mostTries {
		j.Note(KeyEvent{Key: []byte(strconv.Itoa(n)), Client: c, Verdict: Refused, At: testStart})
	}
	if len(c.tries) > mostTries {
		t.Errorf("%d tries are remembered", len(c.tries))
	}
}

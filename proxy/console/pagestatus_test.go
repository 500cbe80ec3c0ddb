package console

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/proxy/events"
	"redlock-proxy/redlock"
)

// nobody is the Meter behind a Journal.
type nobody struct{ redlock.Observer }

func (nobody) Voted(string, redlock.Vote, time.Duration, time.Time) {}
func (nobody) Standing(redlock.MasterStatus)                        {}
func (nobody) ForgetMaster(string)                                  {}
func zeros(n int) string                                            { return strings.Repeat("0,", n) }

// This is the interface: each name, and the form of each value.
func TestStatusInJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it is midnight of 2000-01-01
		s := newScene(
			redlock.MasterStatus{Name: "m1:1", State: redlock.Voting, Longest: 90 * time.Second, ClockAhead: -1500 * time.Microsecond, ClockWithin: 250 * time.Microsecond},
			redlock.MasterStatus{Name: "m2:1", State: redlock.Quarantined, Reason: "it may have forgotten locks", Until: time.Now().Add(time.Minute)},
			voting("m3:1"),
		)
		s.clients = []events.ClientInfo{
			{ID: 1, Address: "10.0.0.6:5000"},
			{ID: 2, Address: "10.0.0.7:5000", Identity: events.Identity{Name: "worker", DB: 2}, Command: "set", Key: "lock:a", Began: time.Now()},
			{ID: 3, Address: "10.0.0.8:5000", Command: "get", Key: "lock:b", Began: time.Now().Add(1450 * time.Millisecond)},
		}
		s.masters.NewUntil = time.Now().Add(time.Hour)
		journal := s.console.Journal
		for range 10 {
			journal.Note(events.KeyEvent{DB: 1, Key: []byte("lock:hot"), Verdict: events.Refused, At: time.Now()})
		}
		observer := journal.Observer(nobody{})
		observer.Voted("m1:1", redlock.Granted, time.Millisecond, time.Now())
		observer.Voted("m1:1", redlock.Refused, 2*time.Millisecond, time.Now())
		observer.Voted("m1:1", redlock.Failed, time.Second, time.Now()) // says nothing about its latency
		for _, row := range []struct {
			kind    redlock.Kind
			verdict redlock.Verdict
		}{
			{redlock.KindAcquire, redlock.Won}, {redlock.KindAcquire, redlock.Lost}, {redlock.KindSwap, redlock.Lost},
			{redlock.KindRead, redlock.NoQuorum}, {redlock.KindRead, redlock.Won},
		} {
			journal.NoteCommand(row.kind, row.verdict, time.Now())
		}
		watching, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		observer.Standing(voting("m3:1"))
		journal.Watch(watching, func() redlock.Status { return s.masters })
		journal.NoteReload("configuration reloaded")
		const want = `{"time":"2000-01-01T00:00:01.500Z","started":"2000-01-01T00:00:00.000Z","version":"a version","health":"at_risk",` +
			`"quorum":{"voting":2,"needed":2,"masters":3,"text":"2 of 3 lock masters vote, 2 needed","reason":"","new_until":"2000-01-01T01:00:00.000Z"},` +
			`"masters":[` +
			`{"name":"m1:1","state":"voting","reason":"","since":"2000-01-01T00:00:00.000Z","until":null,"clock_ahead_ms":-1.5,"clock_within_ms":0.25,"vote_ms":1.5,"vote_max_ms":2,"longest_ttl_s":90},` +
			`{"name":"m2:1","state":"quarantined","reason":"it may have forgotten locks","since":"2000-01-01T00:00:00.000Z","until":"2000-01-01T00:01:00.000Z","clock_ahead_ms":null,"clock_within_ms":null,"vote_ms":null,"vote_max_ms":null,"longest_ttl_s":0},` +
			`{"name":"m3:1","state":"voting","reason":"","since":"2000-01-01T00:00:00.000Z","until":null,"clock_ahead_ms":null,"clock_within_ms":null,"vote_ms":null,"vote_max_ms":null,"longest_ttl_s":0}],` +
			`"clients":3,` +
			`"lock_commands":{"granted":1,"refused":2,"undecided":1,"last_minute":{"granted":[Z1],"refused":[Z2],"undecided":[Z1]}},` +
			`"hot_keys":[{"key":"lock:hot","db":1,"refused":10}],` +
			`"waiters":{"count":1,"oldest":[{"client":"10.0.0.7:5000","name":"worker","command":"set","key":"lock:a","db":2,"since":"2000-01-01T00:00:00.000Z"}]},` +
			`"unruled":[{"pattern":"job:*","uses":3,"first":null,"last":null,"shape":"a shape","library":"a library","rule":"- match: 'job:*'"}],` +
			`"events":[{"time":"2000-01-01T00:00:01.500Z","kind":"reload","master":"","text":"configuration reloaded"},` +
			`{"time":"2000-01-01T00:00:00.000Z","kind":"state","master":"m2:1","text":"quarantined: it may have forgotten locks"}],` +
			`"notes":["demo: toys"],"upstream_problem":"connection refused"}`
		got := string(s.text())
		if want := strings.NewReplacer("Z1", zeros(59)+"1", "Z2", zeros(59)+"2").Replace(want); got != want {
			t.Errorf("it is\n%s, want\n%s", got, want)
		}
		time.Sleep(2 * time.Minute)
		var later struct {
			Masters []struct {
				VoteMS *float64 `json:"vote_ms"`
			}
			Commands struct {
				Granted    int64
				LastMinute struct{ Granted []int64 } `json:"last_minute"`
			} `json:"lock_commands"`
		}
		if err := json.Unmarshal(s.text(), &later); err != nil {
			t.Fatal(err)
		}
		if later.Masters[0].VoteMS != nil || later.Commands.Granted != 1 || len(later.Commands.LastMinute.Granted) != 60 || later.Commands.LastMinute.Granted[59] != 0 {
			t.Errorf("two minutes later: %+v", later)
		}
	})
}

func TestHealthInOneWord(t *testing.T) {
	for _, row := range []struct {
		voting, masters int
		draining        bool
		want            string
	}{
		{5, 5, false, "whole"}, {4, 5, false, "reduced"}, {3, 5, false, "at_risk"}, {2, 5, false, "lost"}, {0, 5, false, "lost"},
		{1, 1, false, "whole"}, {2, 3, false, "at_risk"}, {3, 3, true, "draining"},
	} {
		if got := healthOf(row.voting, row.masters/2+1, row.masters, row.draining); got != row.want {
			t.Errorf("%+v: %s", row, got)
		}
	}
}

// The clients that have waited longest are shown, and the number of all.
func TestWaitersAreBounded(t *testing.T) {
	now := time.Now()
	var clients []events.ClientInfo
	for i := range 3 * mostWaiters {
		clients = append(clients, events.ClientInfo{ID: int64(i), Command: "set", Key: strconv.Itoa(i), Began: now.Add(-time.Duration(i) * time.Second)})
	}
	var w struct {
		Count  int
		Oldest []struct{ Key string }
	}
	if text, err := json.Marshal(waitersOf(clients, now)); err != nil || json.Unmarshal(text, &w) != nil {
		t.Fatalf("%s %v", text, err)
	}
	if w.Count != 3*mostWaiters-1 || len(w.Oldest) != mostWaiters || w.Oldest[0].Key != strconv.Itoa(3*mostWaiters-1) {
		t.Errorf("%d of %d, the first is %+v", len(w.Oldest), w.Count, w.Oldest[0])
	}
}

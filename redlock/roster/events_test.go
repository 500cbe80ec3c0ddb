package roster

import (
	"testing"
	"time"

	"redlock-proxy/redlock/marker"
)

// What was read last on a connection that is down stays unread when a clock jumps. So does a missing marker.
func TestRosterAJumpBringsNoReadingBack(t *testing.T) {
	now := time.Now()
	r := votingRoster(3, now)
	r.Step(Disconnected{Place{0, 0}, NotConnected}, now)
	r.jumped(0, Jump{time.Hour, time.Hour}, now)
	if got := r.remembering(); got != 2 {
		t.Errorf("%d remember", got)
	}
}

// Two masters whose clocks jumped by the same amount are written to one after the other.
func TestRosterAWriteIsOfOneMaster(t *testing.T) {
	now := time.Now()
	r := votingRoster(5, now)
	for i := range 2 {
		r.jumped(i, Jump{time.Hour, time.Hour}, now)
	}
	for _, w := range r.Tick(now.Add(time.Minute), rosterLimits) {
		if w.Master == 0 {
			r.Step(Wrote{w}, now)
		}
	}
	if r.views[Place{0, 0}].jump != 0 || r.views[Place{1, 0}].jump == 0 {
		t.Errorf("after a write to the first one, it has %v to write down, and the second %v", r.views[Place{0, 0}].jump, r.views[Place{1, 0}].jump)
	}
}

// A marker that has changed has all others judged again.
func TestRosterAChangedMarkerIsNews(t *testing.T) {
	now := time.Now()
	r := votingRoster(3, now)
	for text, want := range map[string]bool{r.views[Place{0, 0}].text: false, r.another(0, func(*marker.Marker) {}): true} {
		before := r.Ready().Version
		r.shows(Place{0, 0}, text)
		if got := r.Ready(); (got.Version > before) != want || got.Changed != want {
			t.Errorf("%s: version %d after %d, %+v", text, got.Version, before, got)
		}
		r.shows(Place{0, 0}, r.marker(Place{0, 0}, "s", 0, now).String())
	}
}

// A key that holds no text is no missing marker: no set begins over it.
func TestRosterNoSetBeginsOverAnotherKey(t *testing.T) {
	now := time.Now()
	for _, broken := range []bool{false, true} {
		r := New(serversNamed(3), false, 0)
		for i := range 3 {
			r.Step(Connected{Place: Place{i, 0}, Run: r.names(i)}, now)
			r.checked(Place{i, 0}, "", broken && i == 2, now, now)
		}
		if writes := r.Tick(now, rosterLimits); (len(writes) == 0) != broken {
			t.Errorf("one key is of another kind: %v; it writes %v", broken, writes)
		}
	}
}

// Another server in the list is a stranger. The same one, listed anew, is not.
func TestRosterWhatAListForgets(t *testing.T) {
	now := time.Now()
	for name, known := range map[string]bool{"a": true, "x": false} {
		r := votingRoster(3, now)
		for i := range 2 {
			r.shows(Place{i, 0}, "redlock-proxy/9 db=0")
		}
		r.Step(Listed{0, Server{Name: name}}, now)
		if _, seen := r.views[Place{0, 0}]; seen != known || len(r.servers) != 3 {
			t.Errorf("%s is listed: what was seen is known: %v, of %d servers", name, seen, len(r.servers))
		}
		if _, other := r.views[Place{1, 0}]; !other || !r.outrun[Place{1, 0}] || r.outrun[Place{0, 0}] != known {
			t.Errorf("%s is listed: another one is known: %v; later versions at %v", name, other, r.outrun)
		}
	}
}

// A server that was removed may belong to a later version. That says nothing about the masters.
func TestRosterALaterVersionOnARemovedServer(t *testing.T) {
	for place, want := range map[int]bool{2: true, 3: false} {
		r := resizedRoster("1 1 1 5-", worldBegan)
		r.checked(Place{place, 0}, "redlock-proxy/9 db=0", false, worldBegan, worldBegan)
		if got := r.isOutrun(); got != want {
			t.Errorf("place %d: %v", place+1, got)
		}
	}
}

package console

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/unruled"
	"redlock-proxy/redlock"
)

// A scene is a Page whose Source the test sets.
type scene struct {
	*Page
	mu       sync.Mutex
	masters  redlock.Status
	clients  []events.ClientInfo
	draining bool
}

func newScene(masters ...redlock.MasterStatus) *scene {
	s := &scene{masters: redlock.Status{Needed: len(masters)/2 + 1, Masters: masters}}
	c := testConsole()
	c.Masters = func() events.State {
		s.mu.Lock()
		defer s.mu.Unlock()
		return c.Journal.Masters(s.masters)
	}
	c.Clients = func() []events.ClientInfo { return slices.Clone(s.clients) }
	c.Version = "a version"
	c.Draining = func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.draining
	}
	c.Notes = func() []string { return []string{"demo: toys"} }
	c.Upstream = func() string { return "connection refused" }
	s.Page = NewPage(c)
	s.unruled = func() []unruled.Found {
		return []unruled.Found{{Match: "job:*", Uses: 3, Shape: "a shape", Library: "a library"}}
	}
	return s
}

// serve runs the page behind a server with short deadlines, until the test ends.
func (s *scene) serve(t *testing.T) (url string) {
	t.Helper()
	mux := http.NewServeMux()
	s.Register(mux)
	web := httptest.NewUnstartedServer(mux)
	web.Config.ReadTimeout, web.Config.WriteTimeout = 200*time.Millisecond, 200*time.Millisecond
	web.Start()
	t.Cleanup(func() {
		s.Close()
		web.Close()
	})
	return web.URL
}

// listener reads /events.
type listener struct{ lines *bufio.Scanner }

func listen(t *testing.T, url string) (listener, *http.Response) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute) // an event that never comes ends the test
	t.Cleanup(stop)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return listener{bufio.NewScanner(response.Body)}, response
}

// next returns the next event's Status. ok is false at the end.
func (l listener) next(t *testing.T) (s shown, ok bool) {
	t.Helper()
	for l.lines.Scan() {
		data, isData := strings.CutPrefix(l.lines.Text(), "data: ")
		if !isData {
			continue
		}
		if err := json.Unmarshal([]byte(data), &s); err != nil {
			t.Fatal(err)
		}
		return s, true
	}
	return s, false
}

// shown is what these tests read of a Status.
type shown struct {
	Time, Health, Version string
	Masters               []struct{ Name, State string }
	Clients               int
}

// The listener gets the state at once, and each second, for longer than the
// server's deadlines. When the Page is closed, it gets the last state, and the connection ends.
func TestEventsFollowTheState(t *testing.T) {
	s := newScene(voting("m1"), voting("m2"), voting("m3"))
	url := s.serve(t)
	events, response := listen(t, url)
	if kind := response.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Errorf("events are %s", kind)
	}
	first, _ := events.next(t)
	if first.Health != healthWhole || first.Version != "a version" || first.Clients != 0 || len(first.Masters) != 3 {
		t.Errorf("the first event: %+v", first)
	}
	s.mu.Lock()
	s.masters.Masters = []redlock.MasterStatus{voting("m1"), voting("m2"), away("m3")}
	s.mu.Unlock()
	for {
		now, ok := events.next(t)
		if !ok {
			t.Fatal("the events end")
		}
		if now.Masters[2].State == "unreachable" && now.Health == healthAtRisk {
			break
		}
	}
	for range 2 {
		if _, ok := events.next(t); !ok {
			t.Fatal("the events end")
		}
	}
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	s.Close()
	last := shown{}
	for now, ok := events.next(t); ok; now, ok = events.next(t) {
		last = now
	}
	if last.Health != healthDraining {
		t.Errorf("the last event: %+v", last)
	}
	if _, response := listen(t, url); response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("after the end: %s", response.Status)
	}
}

// The page may run its own script and style, and asks nobody but the proxy.
func TestThePageNeedsNoNetwork(t *testing.T) {
	s := newScene(voting("m1"))
	url := s.serve(t)
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || !strings.HasPrefix(response.Header.Get("Content-Type"), "text/html") {
		t.Errorf("the page is answered %s %v", response.Status, err)
	}
	for _, want := range []string{"default-src 'none'", "connect-src 'self'", "script-src 'sha256-", "style-src 'sha256-", "frame-ancestors 'none'"} {
		if policy := response.Header.Get("Content-Security-Policy"); !strings.Contains(policy, want) {
			t.Errorf("no %s in %s", want, policy)
		}
	}
	body := strings.ReplaceAll(string(text), "http://www.w3.org/2000/svg", "") // a name, not an address
	for _, unwanted := range []string{"//cdn", "http://", "https://", "@import", "style=", " src=", "onclick"} {
		if strings.Contains(body, unwanted) {
			t.Errorf("the page has %s", unwanted)
		}
	}
	for _, path := range []string{"metrics", "readyz", "status.json"} {
		if !strings.Contains(body, `href="`+path+`"`) {
			t.Errorf("no link to %s", path)
		}
	}
	for path, want := range map[string]int{"/status.json": http.StatusOK, "/elsewhere": http.StatusNotFound} {
		if response, err := http.Get(url + path); err != nil || response.StatusCode != want {
			t.Errorf("%s: %v %v", path, response.Status, err)
		} else {
			response.Body.Close()
		}
	}
	if response, err := http.Post(url, "", nil); err != nil || response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %v %v", response.Status, err)
	} else {
		response.Body.Close()
	}
}

// The number of listeners is bounded, and one that leaves makes room.
func TestListenersAreBounded(t *testing.T) {
	s := newScene(voting("m1"))
	for range mostListeners {
		s.listeners <- struct{}{}
	}
	url := s.serve(t)
	if _, response := listen(t, url); response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one too many: %s", response.Status)
	}
	<-s.listeners
	if _, response := listen(t, url); response.StatusCode != http.StatusOK {
		t.Errorf("one in place of one that left: %s", response.Status)
	}
}

// Many listeners cost as much as two, and what they get is not old.
func TestListenersShareTheState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, made := newScene(voting("m1")), 0
		notes := s.console.Notes
		s.console.Notes = func() []string {
			made++
			return notes()
		}
		for range 10 {
			s.toSend()
		}
		if made != 1 {
			t.Errorf("ten listeners at once: %d states are made", made)
		}
		s.console.Journal.NoteReload("reloaded")
		time.Sleep(interval / 2)
		if !strings.Contains(string(s.toSend()), "reloaded") {
			t.Errorf("an old state is sent: %s", s.toSend())
		}
		s.console.Journal.NoteReload("reloaded again")
		s.Close()
		if !strings.Contains(string(s.toSend()), "reloaded again") {
			t.Errorf("the last state is an old one: %s", s.toSend())
		}
	})
}

func voting(name string) redlock.MasterStatus {
	return redlock.MasterStatus{Name: name, State: redlock.Voting}
}

func away(name string) redlock.MasterStatus {
	return redlock.MasterStatus{Name: name, State: redlock.Unreachable, Reason: "it is not connected"}
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

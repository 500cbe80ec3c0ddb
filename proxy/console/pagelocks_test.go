package console

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/proxy/events"
	"redlock-proxy/redlock/scan"
)

// This is the interface: each name, and the form of each value. The value of a lock is not
// in it.
func TestLocksInJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it is midnight of 2000-01-01
		s := newScene(voting("m1"))
		asked := ""
		s.list = func(_ context.Context, glob string, n int) (Held, bool) {
			asked = glob
			copied := scan.Copy{Type: "string", Text: []byte("secret"), Digest: "a1b2c3d4", TTL: 1500 * time.Millisecond}
			forEver := copied
			forEver.TTL = scan.NoTTL
			holder := events.Holder{Client: events.ClientInfo{Address: "10.0.0.6:5000", Identity: events.Identity{Name: "worker"}}, Since: time.Now()}
			return Held{More: true, Locks: []HeldLock{
				{DB: 1, Key: strings.Repeat("k", 2*longestKey), Holding: scan.Holding{Copy: forEver, Holders: 3}},
				{Key: "lock:a*", Holding: scan.Holding{Copy: copied, Holders: 4}, Holder: holder, Known: true, Waiters: 2},
			}}, n == usualLocks
		}
		want := `{"time":"2000-01-01T00:00:00.000Z","search":"a*[","complete":false,"more":true,"locks":[` +
			`{"key":"lock:a*","db":0,"type":"string","digest":"a1b2c3d4","holder":{"client":"10.0.0.6:5000","name":"worker","connected":true,"since":"2000-01-01T00:00:00.000Z"},` +
			`"until":"2000-01-01T00:00:01.500Z","masters":4,"waiters":2},` +
			`{"key":"` + strings.Repeat("k", longestKey) + `","db":1,"type":"string","digest":"a1b2c3d4","holder":null,"until":null,"masters":3,"waiters":0}]}`
		if text, ok := s.lockTable(t.Context(), "a*["); !ok || string(text) != want || asked != `*a\*\[*` {
			t.Errorf("%v, asked %s\ngot  %s\nwant %s", ok, asked, text, want)
		}
	})
}

// Many that ask together cause one question at a time, with pauses. The same search gets
// the same answer for a second.
func TestQuestionsForLocksAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, began := newScene(voting("m1")), time.Now()
		var at []time.Duration
		s.list = func(context.Context, string, int) (Held, bool) {
			at = append(at, time.Since(began)) // without a lock: the race detector would tell
			time.Sleep(100 * time.Millisecond)
			return Held{}, true
		}
		var all sync.WaitGroup
		ask := func(search string) {
			all.Go(func() {
				if _, ok := s.lockTable(t.Context(), search); !ok {
					t.Errorf("no answer for %q", search)
				}
			})
		}
		for range 20 {
			ask("")
		}
		all.Wait()
		if len(at) != 1 {
			t.Errorf("asked at %v", at)
		}
		for _, search := range []string{"a", "b", "c"} {
			ask(search)
		}
		all.Wait()
		if len(at) != 4 || at[1] < 600*time.Millisecond || at[2] < at[1]+600*time.Millisecond || at[3] < at[2]+600*time.Millisecond {
			t.Errorf("asked at %v", at)
		}
	})
}

// A question that takes too long keeps nobody waiting, and ends with the page.
func TestQuestionsForLocksEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, began := newScene(voting("m1")), time.Now()
		s.list = func(ctx context.Context, _ string, _ int) (Held, bool) {
			<-ctx.Done()
			return Held{}, true
		}
		if text, ok := s.lockTable(t.Context(), ""); !ok || time.Since(began) != heldTimeout || !strings.Contains(string(text), `"complete":false`) {
			t.Errorf("%v after %s: %s", ok, time.Since(began), text)
		}
		s.held.turn <- struct{}{}
		if _, ok := s.lockTable(t.Context(), ""); ok {
			t.Error("two questions at a time")
		}
		<-s.held.turn
		time.Sleep(heldKept)
		began = time.Now()
		ended := make(chan struct{})
		go func() {
			s.lockTable(t.Context(), "")
			close(ended)
		}()
		synctest.Wait()
		s.Close()
		<-ended
		if time.Since(began) != 0 {
			t.Errorf("it delays the end by %s", time.Since(began))
		}
	})
}

func TestLocksOverHTTP(t *testing.T) {
	s := newScene(voting("m1"))
	able := false
	s.list = func(context.Context, string, int) (Held, bool) { return Held{}, able }
	mux := http.NewServeMux()
	s.Register(mux)
	ask := func(search, want string, status int) {
		t.Helper()
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/locks.json?search="+search, nil))
		if w.Code != status || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%.20s: %d %s", search, w.Code, w.Body)
		}
	}
	ask("a", "others list locks now; ask again\n", http.StatusServiceUnavailable)
	able = true
	ask("a%22", `"search":"a\"","complete":false,"more":false,"locks":[]}`, http.StatusOK)
	ask(strings.Repeat("x", longestKey+1), "search must have at most 256 bytes\n", http.StatusBadRequest)
}

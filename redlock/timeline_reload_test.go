package redlock

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/roster"
	"redlock-proxy/redlock/toymaster"
)

// Masters are replaced while requests go on, and wrong replacements are refused.

// joining makes a server that could become a master.
func (w *timeline) joining(name string) Master {
	k := toymaster.NewLink("p-"+name, newMaster(name), 6, w.World)
	return Master{Name: name, Dial: func(ctx context.Context) (net.Conn, error) { return k.Dial(ctx) }}
}

// withMaster is a configuration in which another server is the master at a place.
func (w *timeline) withMaster(l *Locker, place int, name string) Config {
	cfg := timelineConfig()
	cfg.Masters = slices.Clone(l.settings().Masters)
	cfg.Masters[place] = w.joining(name)
	return cfg
}

func TestTimelineAReplacedMasterStopsVotingAndTheNewOneBeginsInQuarantine(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		old := w.another(timelineConfig())
		w.settle()
		w.mustAcquire(tokenA, time.Minute)
		cfg := w.withMaster(w.locker, 2, "m6")
		if err := w.locker.Reload(context.Background(), cfg); err != nil {
			t.Fatal(err)
		}
		w.settle()
		w.wantStandings(w.locker, "CCQCC")
		w.wantStandings(old, "CCBCC")
		if status := w.locker.Status(); status.Epoch != 2 || status.Masters[2].Name != "m6" {
			t.Errorf("%+v", status)
		}
		// A replaced server must not come back through an old list, not even empty.
		w.masters[2].Flush()
		w.settle()
		w.wantStandings(old, "CCUCC")
		w.sleep(11 * time.Minute)
		w.wantStandings(w.locker, "CCCCC")
		w.wantStandings(old, "CCUCC")
		// The other process gets the same list.
		if err := old.Reload(context.Background(), cfg); err != nil {
			t.Fatal(err)
		}
		w.settle()
		w.wantStandings(w.locker, "CCCCC")
		w.wantStandings(old, "CCCCC")
		if epoch := old.Status().Epoch; epoch != 2 {
			t.Errorf("epoch %d", epoch)
		}
	})
}

// A server that was replaced has an old marker, which would bar it for ever.
func TestTimelineAReplacedMasterComesBackOnlyWithoutItsMarker(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.settle()
		list := w.withMaster(w.locker, 2, "m6")
		back := timelineConfig()
		back.Masters = w.locker.settings().Masters
		if err := w.locker.Reload(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		w.sleep(11 * time.Minute)
		if err := w.locker.Reload(t.Context(), back); err == nil || !strings.Contains(err.Error(), "delete the key "+marker.Key) {
			t.Errorf("%v", err)
		}
		w.wantStandings(w.locker, "CCCCC")
		w.masters[2].Flush()
		if err := w.locker.Reload(t.Context(), back); err != nil {
			t.Fatal(err)
		}
		w.settle()
		w.wantStandings(w.locker, "CCQCC")
		w.sleep(11 * time.Minute)
		w.wantStandings(w.locker, "CCCCC")
	})
}

func TestTimelineAReloadThatIsNotSafeIsRefused(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		same := w.locker.settings().Masters
		for want, masters := range map[string][]Master{
			"added at the end of the list":      {same[0], w.joining("m5b"), same[1], same[2], same[3], same[4]},
			"only the last lock master":         same[1:],
			"adding m9: nothing there":          append(slices.Clone(same), Master{Name: "m9", Dial: func(context.Context) (net.Conn, error) { return nil, fmt.Errorf("nothing there") }}),
			"adding m8: it is the same server":  append(slices.Clone(same), Master{Name: "m8", Dial: same[1].Dial}),
			"one lock master changes at a time": same[:3],
			"reload with one change first":      append(slices.Clone(same), w.joining("m6"), w.joining("m7")),
			"order of the lock masters":         {same[1], same[0], same[2], same[3], same[4]},
			"m1 and m2 are both replaced":       {w.joining("m6"), w.joining("m7"), same[2], same[3], same[4]},
			"it is the same server as m2":       {{Name: "m8", Dial: same[1].Dial}, same[1], same[2], same[3], same[4]},
			"replacing m1 by m9: nothing there": {{Name: "m9", Dial: func(context.Context) (net.Conn, error) { return nil, fmt.Errorf("nothing there") }}, same[1], same[2], same[3], same[4]},
			"above zero":                        nil,
		} {
			cfg := timelineConfig()
			cfg.Masters = masters
			if masters == nil {
				cfg.MasterTimeout, cfg.Masters = 0, same
			}
			if err := w.locker.Reload(context.Background(), cfg); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
		w.wantStandings(w.locker, "CCCCC")
		if status := w.locker.Status(); status.Epoch != 1 {
			t.Errorf("%+v", status)
		}
	})
}

// Two processes replace a master each, the second before it has heard of the first one's
// replacement. Neither replacement is lost, and no place ever has two servers that vote.
func TestTimelineAReplacementDoesNotUndoAnother(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		first, second := w.another(timelineConfig()), w.locker
		w.settle()
		theirs, ours := w.withMaster(first, 1, "m7"), w.withMaster(second, 0, "m6")
		if err := first.Reload(t.Context(), theirs); err != nil {
			t.Fatal(err)
		}
		if epoch := second.Status().Epoch; epoch != 1 {
			t.Fatalf("the second process has heard of epoch %d already", epoch)
		}
		if err := second.Reload(t.Context(), ours); err == nil || !strings.Contains(err.Error(), "another proxy is changing a master") {
			t.Errorf("%v", err)
		}
		w.sleep(11 * time.Minute)
		w.wantStandings(first, "BCCCC") // both replacements are on record...
		w.wantStandings(second, "BBCCC")
		if err := second.Reload(t.Context(), ours); err != nil { // ...and the second can go on
			t.Fatal(err)
		}
		ours.Masters = slices.Clone(ours.Masters)
		ours.Masters[1] = theirs.Masters[1]
		for _, l := range []*Locker{first, second} {
			if err := l.Reload(t.Context(), ours); err != nil {
				t.Error(err)
			}
		}
		w.sleep(11 * time.Minute)
		w.wantStandings(first, "CCCCC")
		w.wantStandings(second, "CCCCC")
	})
}

// Whichever comes first, no place ever has two servers that vote.
func TestTimelineTwoReplacementsAtTheSameMoment(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		lockers := []*Locker{w.locker, w.another(timelineConfig())}
		w.settle()
		both := w.crew()
		for i, l := range lockers {
			cfg := w.withMaster(l, i, fmt.Sprintf("m%d", 6+i))
			both.Go(func() {
				if err := l.Reload(t.Context(), cfg); err != nil && !strings.Contains(err.Error(), "another proxy is changing a master") {
					t.Error(err)
				}
			})
		}
		both.Wait()
		w.sleep(11 * time.Minute)
		voting := map[int]string{}
		for _, l := range lockers {
			for i, m := range l.Status().Masters {
				if voting[i] != "" && m.State == roster.Voting && m.Name != voting[i] {
					t.Errorf("%s and %s vote in one place", m.Name, voting[i])
				}
				if m.State == roster.Voting {
					voting[i] = m.Name
				}
			}
		}
	})
}

package roster

import (
	"fmt"
	"testing"
	"time"
	"unsafe"

	"redlock-proxy/redlock/marker"
)

// What a batch finds besides the marker decides whether its vote counts.
func TestRosterWhatABatchFinds(t *testing.T) {
	limits := scriptLimits
	for _, row := range []struct {
		reading Reading
		state   State
		until   time.Duration
	}{
		{Reading{Watched: limits.Watch()}, Voting, 0},
		{Reading{Witnessed: true}, Voting, 0},
		{Reading{Watched: limits.Watch() - time.Second}, Starting, time.Second},
		{Reading{Witnessed: true, Unsure: true}, Starting, 0},
		{Reading{Witnessed: true, Suspended: true}, Starting, 0},
		{Reading{Witnessed: true, Jumped: true}, Starting, 0},
	} {
		row.reading.Received = worldBegan
		st := Standing{State: Voting}.At(marker.Marker{}, row.reading, limits)
		if until := st.Until.Sub(worldBegan); st.State != row.state || row.until != 0 && until != row.until {
			t.Errorf("%+v: %v for %v", row.reading, st.State, until)
		}
	}
}

// A reading takes time, so a small step is in no certain direction.
func TestRosterWhichWayAClockJumped(t *testing.T) {
	for jump, want := range map[Jump]string{{}: "false false", {-1, 1}: "false false", {0, 1}: "false false", {-1, 0}: "false false", {1, 2}: "true false", {-2, -1}: "false true"} {
		if got := fmt.Sprint(jump.Forward(), " ", jump.Backward()); got != want {
			t.Errorf("%v: %s", jump, got)
		}
	}
}

// While this machine is suspended, only the wall clock may go on. It may also be set back.
func TestRosterTimeGoesOnByEitherClock(t *testing.T) {
	at := time.Now()
	later := at.Add(time.Second)
	wall := (*uint64)(unsafe.Pointer(&later)) // the first field: a flag, 33 bits of seconds, 30 of nanoseconds
	for _, row := range []struct {
		step int64 // of the wall clock, in seconds
		want time.Duration
	}{{0, time.Second}, {3600, time.Hour + time.Second}, {-7200, time.Second}} {
		*wall += uint64(row.step) << 30
		if got := ago(at, later); got != row.want {
			t.Errorf("after steps of the wall clock, the last by %d s, %v have passed, want %v", row.step, got, row.want)
		}
	}
}

// changing returns a roster whose masters vote in many databases, and a function that
// changes the state of one place.
func changing(databases int) (change func()) {
	now := time.Now()
	r := New(make([]Server, 5), false, 0)
	for i := range 5 {
		for db := range databases {
			p := Place{i, db}
			r.Step(Connected{Place: p, Run: "r"}, now)
			r.Step(Noted{p, Standing{State: Voting}}, now)
		}
	}
	r.Ready()
	p, state := Place{2, databases - 1}, Voting
	return func() {
		state = Voting + Quarantined - state
		r.Step(Noted{p, Standing{State: state}}, now)
		r.Ready()
	}
}

// A change of state is cheap, however many databases are in use: every vote waits for it.
func TestRosterAChangeCostsTheSameInManyDatabases(t *testing.T) {
	allocations := func(databases int) float64 { return testing.AllocsPerRun(100, changing(databases)) }
	if few, many := allocations(4), allocations(marker.Databases); many > few {
		t.Errorf("%v allocations with many databases, %v with four", many, few)
	}
}

func BenchmarkRosterChange(b *testing.B) {
	for _, databases := range []int{16, 256} {
		b.Run(fmt.Sprint(databases), func(b *testing.B) {
			change := changing(databases)
			for b.Loop() {
				change()
			}
		})
	}
}

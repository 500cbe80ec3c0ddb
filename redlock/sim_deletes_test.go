package redlock

import (
	"testing"
	"time"
)

// deletableByRun is deletable for a run that deletes whatever it finds. It asks the masters three times.
const deletableByRun = 250 * time.Millisecond

// deletion deletes the client's lock without comparing.
func (c *simClient) deletion() RunRequest {
	r := RunRequest{Keys: [][]byte{c.lock}}
	switch c.random.IntN(4) {
	case 0:
		r.Args = bytesOf([]string{"EVAL", deleteAnyway, "1", string(c.lock)})
	case 1:
		r.Transaction = [][][]byte{bytesOf([]string{"EVAL", deleteAnyway, "1", string(c.lock)})}
	case 2:
		r.Args, r.Deletes = bytesOf([]string{"PEXPIRE", string(c.lock), "0", "LT"}), r.Keys
	default:
		r.Transaction, r.Deletes = [][][]byte{bytesOf([]string{"DEL", string(c.lock)})}, r.Keys
	}
	return r
}

// The same worlds as those of TestSimulation. Clients release by runs that look at nothing, too.
func TestSimulationDeletes(t *testing.T) {
	released, seeds := 0, simSeeds(t, 4)
	simulateAll(t, seeds, simOptions{deletes: true}, func(s *simulation) { released += s.history.counts.released })
	t.Logf("%d released in %d worlds", released, len(seeds))
	if len(seeds) >= 25 && released < 5*len(seeds) {
		t.Errorf("too little happened: %d released", released)
	}
}

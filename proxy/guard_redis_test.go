package proxy

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestGuardAgreesWithRedis sends every input, cut at every place, to a Redis
// server and compares what it answers with the guard's reading.
func TestGuardAgreesWithRedis(t *testing.T) {
	open := startGuardRedis(t)
	locked := startGuardRedis(t, "--requirepass", guardPassword)
	for _, input := range guardInputs() {
		server := open
		if input.locked {
			server = locked
		}
		server.compare(t, input, cuts(input.bytes))
	}
}

// TestGuardAgreesWithRedisOnDamagedInput does the same with inputs of which a
// few bytes were changed, dropped or doubled, always the same ones.
func TestGuardAgreesWithRedisOnDamagedInput(t *testing.T) {
	server := startGuardRedis(t)
	random := rand.New(rand.NewPCG(1, 2))
	for _, input := range guardInputs() {
		if len(input.bytes) > 1000 || input.locked {
			continue
		}
		for range 20 {
			damaged := []byte(input.bytes)
			for range 1 + random.IntN(3) {
				at := random.IntN(len(damaged) + 1)
				switch random.IntN(3) {
				case 0:
					const meaningful = "\r\n\x00*$-0123 \t\v\"'\\xaP"
					damaged = slices.Insert(damaged, at, meaningful[random.IntN(len(meaningful))])
				case 1:
					damaged = slices.Delete(damaged, at, min(at+1+random.IntN(2), len(damaged)))
				case 2:
					end := min(at+random.IntN(8), len(damaged))
					damaged = slices.Insert(damaged, at, bytes.Clone(damaged[at:end])...)
				}
			}
			server.compare(t, guardInput{bytes: string(damaged)}, []int{random.IntN(len(damaged) + 1)})
		}
	}
}

// compare sends an input, cut at the given places. The server's raw answer must
// be what it answers to the guard's commands written properly, then the guard's
// error, if any, and the end of the connection.
func (s *guardRedis) compare(t *testing.T, input guardInput, cuts []int) {
	t.Helper()
	got := feed(t, newTestGuard(input.locked), []byte(input.bytes))
	want := []byte(input.answer)
	if input.answer == "" {
		var proper []byte
		for _, args := range got.commands {
			proper = append(proper, encodeCommand(args...)...)
		}
		want = s.exchange(t, proper, nil, false)
	}
	want = append(want, got.refusal()...)
	for _, cut := range cuts {
		answer := s.exchange(t, []byte(input.bytes[:cut]), []byte(input.bytes[cut:]), got.err != nil)
		if !bytes.Equal(answer, want) {
			t.Errorf("%.100q cut at %d: Redis answers %.300q, the guard's reading is worth %.300q", input.bytes, cut, answer, want)
			return
		}
	}
}

package wire

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"redlock-proxy/proxy/proxytest"
)

// TestDecoderAgreesWithRedis sends every input, cut at every place, to a Redis
// server and compares what it answers with the decoder's reading.
func TestDecoderAgreesWithRedis(t *testing.T) {
	open := proxytest.StartRedis(t)
	locked := proxytest.StartRedis(t, "--requirepass", proxytest.Password)
	for _, input := range proxytest.Inputs() {
		server := open
		if input.Locked {
			server = locked
		}
		compare(t, server, input, proxytest.Cuts(input.Bytes))
	}
}

// TestDecoderAgreesWithRedisOnDamagedInput does the same with inputs of which a
// few bytes were changed, dropped or doubled, always the same ones.
func TestDecoderAgreesWithRedisOnDamagedInput(t *testing.T) {
	server := proxytest.StartRedis(t)
	random := rand.New(rand.NewPCG(1, 2))
	for _, input := range proxytest.Inputs() {
		if len(input.Bytes) > 1000 || input.Locked {
			continue
		}
		for range 20 {
			damaged := []byte(input.Bytes)
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
			compare(t, server, proxytest.Input{Bytes: string(damaged)}, []int{random.IntN(len(damaged) + 1)})
		}
	}
}

// compare sends an input, cut at the given places. The server's raw answer must
// be what it answers to the decoder's commands written properly, then the decoder's
// error, if any, and the end of the connection.
func compare(t *testing.T, s *proxytest.Redis, input proxytest.Input, cuts []int) {
	t.Helper()
	got := feed(t, newTestDecoder(input.Locked), []byte(input.Bytes))
	want := []byte(input.Answer)
	if input.Answer == "" {
		var proper []byte
		for _, args := range got.commands {
			proper = append(proper, proxytest.EncodeCommand(args...)...)
		}
		want = s.Exchange(t, proper, nil, false)
	}
	want = append(want, got.refusal()...)
	for _, cut := range cuts {
		answer := s.Exchange(t, []byte(input.Bytes[:cut]), []byte(input.Bytes[cut:]), got.err != nil)
		if !bytes.Equal(answer, want) {
			t.Errorf("%.100q cut at %d: Redis answers %.300q, the decoder's reading is worth %.300q", input.Bytes, cut, answer, want)
			return
		}
	}
}

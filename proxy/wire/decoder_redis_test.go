package wire

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"redlock-proxy/proxy/proxytest"
)

// TestDecoderAgreesWithRedis sends every input to a Redis server, in two pieces, cut at
// every place. The answers must be those to the commands that the decoder finds.
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

// TestDecoderAgreesWithRedisOnDamagedInput does the same with damaged inputs: a few
// bytes are inserted, deleted or repeated, in the same places in every run.
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

// compare sends an input in two pieces, once for each cut. It also sends the decoder's
// commands in their standard form. The server's answer to the input must be its answer
// to those, and then the decoder's error and the end of the connection, if the decoder
// found an error.
func compare(t *testing.T, s *proxytest.Redis, input proxytest.Input, cuts []int) {
	t.Helper()
	got := feed(t, newTestDecoder(input.Locked), []byte(input.Bytes))
	want := []byte(ErrNoAuth)
	if !input.Refused {
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
			t.Errorf("%.100q cut at %d: Redis answers %.300q, but %.300q to the decoder's commands", input.Bytes, cut, answer, want)
			return
		}
	}
}

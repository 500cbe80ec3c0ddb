package redlock

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"redlock-proxy/redlock/scan"
)

// Values that are too large to be read together do not end the streams of the masters.
func TestWalkOverLargeValues(t *testing.T) {
	masters := []*liveMaster{startLiveMaster(t), startLiveMaster(t), startLiveMaster(t)}
	set := newLiveSet(t, masters, startLoop(t), func(cfg *Config) { cfg.MaxReply = 16 << 10 }) // a stream holds 1 MiB
	set.awaitVotes()
	const keys = 40
	noise, chance := make([]byte, 100_000), rand.NewChaCha8([32]byte{})
	for n := range keys {
		_, _ = chance.Read(noise)
		for _, m := range masters {
			m.must("SET", fmt.Sprintf("lock:%d", n), base64.StdEncoding.EncodeToString(noise))
		}
	}
	walk := func() (found map[string]bool, all bool) {
		found = map[string]bool{}
		all = set.Reader().Walk(t.Context(),
			func(int, []byte) bool { return true },
			func(_ int, key []byte, copies []scan.Copy) bool {
				if h := scan.Hold(copies); h.State == scan.Held {
					found[string(key)] = true
				}
				return true
			})
		return found, all
	}
	// A busy machine may let a master miss its time.
	for deadline := time.Now().Add(livePatience); ; time.Sleep(time.Millisecond) {
		found, all := walk()
		if all && len(found) == keys {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d keys of %d were found, all: %v", len(found), keys, all)
		}
	}
}

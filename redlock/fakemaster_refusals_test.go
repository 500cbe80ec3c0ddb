package redlock

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/stream"
)

// A fake master whose memory is full, or that cannot save, refuses what a real one refuses.
func TestFakeMasterRefusesAsRedisDoes(t *testing.T) {
	for refusal, begin := range map[string]func(t *testing.T, live *liveMaster){
		full: func(t *testing.T, live *liveMaster) { live.must("CONFIG", "SET", "maxmemory", "1") },
		unsaved: func(t *testing.T, live *liveMaster) {
			if err := os.RemoveAll(filepath.Dir(live.socket)); err != nil {
				t.Fatal(err)
			}
			live.must("CONFIG", "SET", "save", "3600 1000000")
			live.must("BGSAVE")
			for end := time.Now().Add(livePatience); !strings.Contains(string(live.must("INFO", "persistence")), "rdb_last_bgsave_status:err"); time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("it saves")
				}
			}
		},
	} {
		code, _, _ := strings.Cut(refusal, " ")
		t.Run(code, func(t *testing.T) {
			live := startLiveMaster(t)
			directFake(func(fake *fakeSession) {
				for _, do := range []func(...string) []byte{live.do, fake.do} {
					do("SET", "k", "v", "PX", "60000")
				}
				begin(t, live)
				fake.master.refuse(refusal)
				refused := 0
				for _, command := range [][]string{
					{"GET", "k"}, {"PTTL", "k"}, {"EXISTS", "k"}, {"DUMP", "k"}, {"TYPE", "k"}, {"STRLEN", "k"}, {"GETRANGE", "k", "0", "10"}, {"WATCH", "k"}, {"UNWATCH"},
					{"PING"}, {"TIME"}, {"ROLE"}, {"CLIENT", "ID"}, {"INFO", "replication"},
					{"SET", "k", "w", "NX", "PX", "1000"}, stream.WriteProbe, {"GETSET", "k", "w"}, {"INCR", "n"}, {"PEXPIRE", "k", "50000"}, {"PERSIST", "none"}, {"DEL", "none"},
					{"EVAL", stream.ReleaseScript, "1", "k", "w", "-1"}, {"EVAL", extendIfMine, "1", "k", "v", "50000"}, {"EVAL", takeIfFree, "1", "other", "w", "1000"},
					{"MULTI"}, {"GET", "k"}, {"EXEC"}, {"MULTI"}, {"SET", "k", "w"}, {"EXEC"}, {"EVAL", compareAndDelete, "1", "k", "v"},
				} {
					want, got := strings.HasPrefix(string(live.do(command...)), "-"+code), strings.HasPrefix(string(fake.do(command...)), "-"+code)
					if got != want {
						t.Errorf("%.60q is refused: %v, and by Redis: %v", command, got, want)
					}
					if want {
						refused++
					}
				}
				if refused < 6 {
					t.Errorf("Redis refuses %d commands", refused)
				}
			})
		})
	}
}

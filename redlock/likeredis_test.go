package redlock

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/rdb"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/stream"
	"redlock-proxy/redlock/toymaster"
)

// The toy master's Lua is not Redis's. So each script runs on a real server and on a toy master, with the
// same keys.
func TestToyMasterRunsScriptsAsRedisDoes(t *testing.T) {
	live := startLiveMaster(t)
	live.must("SET", "k", "v")
	const payload = "the payload of v" // each server has its own
	with := func(its []byte, command []string) (out []string) {
		for _, word := range command {
			out = append(out, strings.ReplaceAll(word, payload, string(its)))
		}
		return out
	}
	its := live.dump("k")
	live.must("DEL", "k")
	toy := newMaster("toy").Direct()
	for _, before := range [][]string{{"DEL", "k"}, {"SET", "k", "v"}, {"SET", "k", "v", "PX", "60000"}, {"SET", "k", "other"}} {
		for _, run := range [][]string{
			{stream.ReleaseScript, "v", "-1"}, {stream.ReleaseScript, "v", "-2"}, {stream.ReleaseScript, "v", "50000"}, {stream.ReleaseScript, "v", "70000"},
			{stream.ExpireScript, "v", "50000"}, {stream.ExpireScript, "v", "70000"}, {persistScript, "v"},
			{renewScript, "v", "50000", "string"}, {renewScript, "v", "70000", "string"},
			{deleteScript, "dump", payload},
			{compareAndDelete, "v"}, {takeIfFree, "w", "60000"}, {deleteAnyway}, {extendIfMine, "v", "50000"},
		} {
			command := append([]string{"EVAL", run[0], "1", "k"}, run[1:]...)
			for _, do := range [][]string{{"DEL", "k"}, before, command, {"GET", "k"}, {"PTTL", "k"}} {
				want, got := live.do(with(its, do)...), toy.Do(with(rdb.Dump(rdb.Value{Kind: rdb.String, Items: [][]byte{[]byte("v")}}), do)...)
				if string(do[0]) == "PTTL" {
					want, got = roundSeconds(want), roundSeconds(got)
				}
				if string(got) != string(want) {
					t.Errorf("after %q, %.40q %q: %q says %q, and Redis %q", before, run[0], run[1:], do[0], got, want)
				}
			}
		}
	}
}

func roundSeconds(pttl []byte) []byte {
	n, _ := resp.ParseInteger(pttl)
	if n < 0 {
		return pttl
	}
	return toymaster.ReplyInteger((n + 999) / 1000)
}

// summary returns a command as text. Our own scripts go by their file names.
func summary(args [][]byte) string {
	words := ""
	for i, a := range args {
		if i > 0 {
			words += " "
		}
		if name, ours := scriptNames[string(a)]; ours && i == 1 {
			words += name
		} else {
			words += fmt.Sprintf("%.60s", a)
		}
	}
	return words
}

func TestToyMasterWatchesAsRedisDoes(t *testing.T) {
	live := startLiveMaster(t)
	toy := newMaster("toy").Direct()
	late := string(resp.Decimal(time.Now().Add(time.Minute).UnixMilli()))
	for _, before := range [][]string{{"DEL", "k"}, {"SET", "k", "other"}, {"SET", "k", "v"}, {"RESTORE"}} {
		for _, image := range [][]string{{"", "-1"}, {"v", "-1"}, {"v", late}} {
			for _, between := range [][]string{{"GET", "k"}, {"SET", "k", "new"}, {"DEL", "k"}, {"UNWATCH"}} {
				tell := func(do func(args ...string) []byte) (told string) {
					do("SET", "k", "v")
					dump, _ := resp.ParseBulk(do("DUMP", "k"))
					before, seen := before, string(dump)
					if before[0] == "RESTORE" {
						before = []string{"RESTORE", "k", late, string(dump), "REPLACE", "ABSTTL"}
					}
					if image[0] == "" {
						seen = ""
					}
					for _, command := range [][]string{before, {"WATCH", "k"}, {"EVAL", guardScript, "1", "k", seen, image[1]}, between, {"MULTI"}, {"EXISTS", "k"}, {"EXEC"}} {
						told += string(do(command...))
					}
					return told
				}
				if got, want := tell(toy.Do), tell(live.do); got != want {
					t.Errorf("%q, image %q, %q: %q, and Redis %q", before, image, between, got, want)
				}
			}
		}
	}
}

// A toy master whose memory is full, or that cannot save, refuses what a real one refuses.
func TestToyMasterRefusesAsRedisDoes(t *testing.T) {
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
			toy := newMaster("toy").Direct()
			for _, do := range []func(...string) []byte{live.do, toy.Do} {
				do("SET", "k", "v", "PX", "60000")
			}
			begin(t, live)
			toy.Master.Refuse(refusal)
			refused := 0
			for _, command := range [][]string{
				{"GET", "k"}, {"PTTL", "k"}, {"EXISTS", "k"}, {"DUMP", "k"}, {"TYPE", "k"}, {"STRLEN", "k"}, {"GETRANGE", "k", "0", "10"}, {"WATCH", "k"}, {"UNWATCH"},
				{"PING"}, {"TIME"}, {"ROLE"}, {"CLIENT", "ID"}, {"INFO", "replication"},
				{"SET", "k", "w", "NX", "PX", "1000"}, stream.WriteProbe, {"GETSET", "k", "w"}, {"INCR", "n"}, {"PEXPIRE", "k", "50000"}, {"PERSIST", "none"}, {"DEL", "none"},
				{"EVAL", stream.ReleaseScript, "1", "k", "w", "-1"}, {"EVAL", extendIfMine, "1", "k", "v", "50000"}, {"EVAL", takeIfFree, "1", "other", "w", "1000"},
				{"MULTI"}, {"GET", "k"}, {"EXEC"}, {"MULTI"}, {"SET", "k", "w"}, {"EXEC"}, {"EVAL", compareAndDelete, "1", "k", "v"},
			} {
				want, got := strings.HasPrefix(string(live.do(command...)), "-"+code), strings.HasPrefix(string(toy.Do(command...)), "-"+code)
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
	}
}

// A collection that differs in any part is another lock.
func TestReleaseOfACollectionSparesAnother(t *testing.T) {
	m := startLiveMaster(t)
	for _, row := range []struct{ fill, other []string }{
		{[]string{"SADD", "k", "a", "b"}, []string{"SADD", "k", "c"}},
		{[]string{"SADD", "k", "a", "b"}, []string{"SREM", "k", "b"}},
		{[]string{"RPUSH", "k", "a", "b"}, []string{"LSET", "k", "0", "b"}},
		{[]string{"RPUSH", "k", "a", "b"}, []string{"RPUSH", "k", "c"}},
		{[]string{"ZADD", "k", "1", "a"}, []string{"ZADD", "k", "1", "b"}},
		{[]string{"HSET", "k", "a", "1", "b", "2"}, []string{"HSET", "k", "b", "3"}},
		{[]string{"HSET", "k", "a", "1", "b", "2"}, []string{"HDEL", "k", "b"}},
		{[]string{"HSET", "k", "a", "1"}, []string{"SET", "k", "v"}},
		{[]string{"XADD", "k", "1-1", "a", "1"}, []string{"XADD", "k", "2-1", "a", "1"}},
	} {
		m.must("DEL", "k")
		m.must(row.fill...)
		release := resp.AppendEval(nil, deleteScript, [][]byte{[]byte("k")}, rdb.Words(m.dump("k"))...)
		m.must(row.other...)
		if got := string(m.conn.ask(release, 1)[0]); got != ":0\r\n" {
			t.Errorf("%q, then %q: %q", row.fill, row.other, got)
		}
		m.must("DEL", "k")
		m.must(row.fill...)
		if got := string(m.conn.ask(release, 1)[0]); got != ":1\r\n" {
			t.Errorf("%q: %q", row.fill, got)
		}
	}
}

package redlock

import (
	"testing"
	"time"

	"redlock-proxy/redlock/resp"
)

// WATCH, also with the script that precedes a transaction on a key.

func init() {
	fakeCommands["WATCH"] = &fakeCommand{2, reads, (*fakeMaster).watchKeys}
	fakeCommands["UNWATCH"] = &fakeCommand{1, noKeys, func(_ *fakeMaster, s *fakeSession, _ [][]byte) []byte {
		s.watched = nil
		return replyOK
	}}
}

func (m *fakeMaster) watchKeys(s *fakeSession, args [][]byte) []byte {
	if s.watched == nil {
		s.watched = map[string]entry{}
	}
	for _, key := range args[1:] {
		s.watched[string(key)], _ = m.find(s.db, key)
	}
	return replyOK
}

// sawChange tells whether a watched key has changed, and ends the WATCH.
func (m *fakeMaster) sawChange(s *fakeSession) (changed bool) {
	for key, was := range s.watched {
		now, _ := m.find(s.db, []byte(key))
		changed = changed || now != was
	}
	s.watched = nil
	return changed
}

func TestFakeMasterWatchesAsRedisDoes(t *testing.T) {
	live := startLiveMaster(t)
	directFake(func(fake *fakeSession) {
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
						for _, command := range [][]string{before, {"WATCH", "k"}, {"EVAL", fakeGuard, "1", "k", seen, image[1]}, between, {"MULTI"}, {"EXISTS", "k"}, {"EXEC"}} {
							told += string(do(command...))
						}
						return told
					}
					if got, want := tell(fake.do), tell(live.do); got != want {
						t.Errorf("%q, image %q, %q: %q, and Redis %q", before, image, between, got, want)
					}
				}
			}
		}
	})
}

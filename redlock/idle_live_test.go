package redlock

import (
	"fmt"
	"strconv"
	"testing"

	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/stream"
)

// What the stream asks an idle master changes nothing there.
func TestAnIdleMasterIsNotWritten(t *testing.T) {
	s := startLiveSet(t, 3)
	count := func(m *liveMaster, section, field string) int {
		info, _ := resp.ParseBulk(m.must("INFO", section))
		n, _ := strconv.Atoi(stream.InfoField(info, field))
		return n
	}
	probes := func(m *liveMaster) int {
		info, _ := resp.ParseBulk(m.must("INFO", "commandstats"))
		var n int
		fmt.Sscanf(stream.InfoField(info, "cmdstat_unwatch"), "calls=%d", &n)
		return n
	}
	first := s.masters[0]
	s.eventually("probed", func(m *liveMaster) bool { return probes(m) > 0 })
	probed, written, refused := probes(first), count(first, "persistence", "rdb_changes_since_last_save"), count(first, "stats", "total_error_replies")
	s.eventually("probed again", func(*liveMaster) bool { return probes(first) > probed+1 })
	if now := count(first, "persistence", "rdb_changes_since_last_save"); now != written {
		t.Errorf("%d writes", now-written)
	}
	if now := count(first, "stats", "total_error_replies"); now != refused {
		t.Errorf("%d errors", now-refused)
	}
}

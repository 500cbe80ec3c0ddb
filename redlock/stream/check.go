package stream

import (
	"bytes"
	"time"

	"redlock-proxy/redlock/resp"
)

// Each batch ends with three questions of ours: the marker, the time, and whether the
// server is a replica or was one. The votes of the batch count only if all three answers
// are in order. A check once a second would miss a FLUSHALL, a jump of the clock, or a
// failover there and back.
//
// A server can replace its memory without a restart. If it becomes a replica, it loads
// another server's copy, with the marker in it. Then it may become a master again. The
// replication id in INFO replication shows that. INFO costs the server several times as
// much as ROLE. ROLE answers the role, the replication offset and the replicas. The
// offset is 0 as long as the server replicated nothing. A server that was a replica adds
// to it whatever it writes. So if a batch ends with the answer "master, 0, none", no vote
// of this batch came from replaced memory.
//
// The offset proves no more than that. It stays 0 if the other server's offset was 0 and
// nothing was written since. A read could meet the other server's copy then. So the
// stream asks INFO every infoPause in any case. It asks INFO with every batch if ROLE is
// refused or answers anything else. That happens on a server that had a replica. It also
// happens on a server that counts what it writes to its AOF: Valkey, and Redis since 7.2.
var (
	timeAndRole = resp.AppendCommand(resp.AppendCommand(nil, "TIME"), "ROLE")
	timeAndInfo = resp.AppendCommand(resp.AppendCommand(nil, "TIME"), "INFO", "replication")
)

const checkReplies = 3

// infoPause is how long the stream asks ROLE without INFO.
const infoPause = 100 * time.Millisecond

// A Check is the answers to the questions behind a batch.
type Check struct {
	Marker []byte        // the answer to the marker's question
	Time   []byte        // the answer to TIME
	Info   []byte        // INFO replication; nil if it did not change or was not asked
	Fits   bool          // ROLE or INFO was answered
	Unsure bool          // ROLE shows a change of the replication that INFO has not explained yet
	Sent   time.Time     // just before the batch was written
	Slept  time.Duration // total time that this machine had been suspended by Sent
	// Received is when the whole batch had been read.
	Received time.Time
}

// judge reads the answers to a check and lets the owner judge them.
func (s *Stream) judge(asked *Call, replies [][]byte, received time.Time) Judgement {
	c := Check{Marker: replies[0], Time: replies[1], Sent: asked.sent, Slept: asked.slept, Received: received, Fits: true}
	if asked.role {
		c.Unsure = !bytes.Equal(replies[2], roleOfSole)
	} else if info, told := resp.ParseBulk(replies[2]); !told {
		c.Fits = false
	} else if !bytes.Equal(s.info, info) {
		s.info = append(s.info[:0], info...)
		c.Info = s.info
	}
	if c.Unsure || c.Info != nil && !isSole(c.Info) {
		s.askInfo()
	}
	j := s.owner.Judge(c)
	if j.Anew {
		s.mu.Lock()
		s.longest = j.Longest
		s.mu.Unlock()
	}
	return j
}

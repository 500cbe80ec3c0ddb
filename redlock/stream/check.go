package stream

import (
	"bytes"
	"time"

	"redlock-proxy/redlock/resp"
)

// Each batch of questions to a master ends with three of our own: what the marker
// is, what time it is, and whether it is a replica or has been one. Only when all
// are read and in order do the batch's votes count. Looking once a second would let
// a FLUSHALL, a jump of the clock or a failover there and back through.
//
// Memory can be replaced without a restart: a master that is made a replica loads
// another server's copy, with the marker in it, and is made a master again. INFO
// replication tells that by the replication id, and costs the server several times what
// ROLE does. ROLE tells the part, the replication offset and the replicas. The offset
// is 0 as long as nothing was replicated, and a server that was a replica adds to it
// whatever it writes. So where a batch ends with the answer "master, 0, none", no
// vote of this batch was granted by memory that has been replaced.
// The offset tells no more than that: it stays 0 where the other server's was 0,
// until something is written. A read could meet the other server's copy then, so
// INFO is asked every infoPause nevertheless. Where ROLE answers anything else, as
// on a server that had a replica, or on one that counts what it writes to its AOF
// (Valkey, and Redis since 7.2), or where it is refused, INFO is asked with every
// batch.
var (
	timeAndRole = resp.AppendCommand(resp.AppendCommand(nil, "TIME"), "ROLE")
	timeAndInfo = resp.AppendCommand(resp.AppendCommand(nil, "TIME"), "INFO", "replication")
)

const checkReplies = 3

// infoPause is how long ROLE alone is asked, without INFO.
const infoPause = 100 * time.Millisecond

// A Check is what is read behind a batch.
type Check struct {
	Marker []byte        // the answer to the marker's question
	Time   []byte        // the answer to TIME
	Info   []byte        // INFO replication; nil: it says the same as before
	Fits   bool          // ROLE or INFO has answered
	Unsure bool          // something of its replication is new, and what is not known yet
	Sent   time.Time     // before the batch
	Slept  time.Duration // for how long this machine had been suspended by then
	// received is when the first byte of the answers was there.
	Received time.Time
}

// judge reads the check that asked, and has the owner judge.
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

package redlock

import (
	"bytes"
	"time"

	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/stream"
)

// Each batch of questions to a master ends with three of our own: what the marker
// is, what time it is, and whether it is a replica or has been one. Only when all
// are read and in order do the batch's votes count. Looking once a second would let
// a FLUSHALL, a jump of the clock or a failover there and back through.
//
// Memory can be replaced without a restart: a master that is made a replica loads
// another server's copy, with the marker in it, and is made a master again. INFO
// replication tells that by the replication id, and costs the server ten times what
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

// A check is what is read behind a batch.
type check struct {
	marker []byte        // the answer to the marker's question
	time   []byte        // the answer to TIME
	info   []byte        // INFO replication; nil: it says the same as before
	fits   bool          // ROLE or INFO has answered
	unsure bool          // something of its replication is new, and what is not known yet
	sent   time.Time     // before the batch
	slept  time.Duration // for how long this machine had been suspended by then
	// received is when the first byte of the answers was there.
	received time.Time
}

// judge reads the check that asked, and has the owner judge.
func (s *dbStream) judge(asked *call, replies [][]byte, received time.Time) judgement {
	c := check{marker: replies[0], time: replies[1], sent: asked.sent, slept: asked.slept, received: received, fits: true}
	if asked.role {
		c.unsure = !bytes.Equal(replies[2], stream.RoleOfSole)
	} else if info, told := resp.ParseBulk(replies[2]); !told {
		c.fits = false
	} else if !bytes.Equal(s.info, info) {
		s.info = append(s.info[:0], info...)
		c.info = s.info
	}
	if c.unsure || c.info != nil && !stream.IsSole(c.info) {
		s.askInfo()
	}
	j := s.owner.Judge(c)
	if j.anew {
		s.mu.Lock()
		s.longest = j.longest
		s.mu.Unlock()
	}
	return j
}

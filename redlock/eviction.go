package redlock

import (
	"time"

	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/roster"
	"redlock-proxy/redlock/stream"
)

// A server with a limit of memory and another policy than noeviction deletes keys
// that have a TTL, or any, when it is full. A lock that is deleted so is forgotten
// without a trace. So such a master does not vote, and once its policy is
// noeviction it has forgotten what it may have deleted until then.
//
// How a master evicts is looked at now and then, not with every batch: nobody
// changes that in passing, and a memory that is full does not come in a second.

// evictionPause is how often a master is asked how it evicts.
const evictionPause = 10 * time.Second

// evicts says by which policy a master may delete locks; empty: by none.
func evicts(memory []byte) string {
	limit, policy := stream.InfoField(memory, "maxmemory"), stream.InfoField(memory, "maxmemory_policy")
	if limit == "" || limit == "0" || policy == "noeviction" {
		return ""
	}
	return policy
}

// askEviction asks a master how it evicts, if that is due.
func (m *master) askEviction(now time.Time) {
	if m.embedded() || now.UnixNano()-m.evictionAsked.Load() < int64(evictionPause) {
		return
	}
	question := stream.Sending{Frames: resp.AppendCommand(nil, "INFO", "memory")}
	if m.stream(0).Send(stream.Call{Replies: 1, Asker: stream.AskerFunc(m.heardEviction)}, question, now) {
		m.evictionAsked.Store(now.UnixNano())
	}
}

func (m *master) heardEviction(replies [][]byte, _ stream.Judgement, err error) {
	if err != nil {
		return
	}
	if memory, ok := resp.ParseBulk(replies[0]); ok {
		m.voters.do(func(r *roster.Roster) { r.Evicts(m.number, evicts(memory), time.Now()) })
	}
}

package master

import (
	"time"

	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/roster"
	"redlock-proxy/redlock/stream"
)

// If a server has a memory limit and an eviction policy other than noeviction, it deletes
// keys when it is full. Depending on the policy it deletes any key, or keys with a TTL. A
// lock deleted this way is forgotten without a trace. So such a master does not vote.
// After its policy becomes noeviction, it counts as having forgotten what it may have
// deleted before.
//
// The Set asks for the policy now and then, not with every batch. Nobody changes a policy
// in passing, and a memory does not fill within a second.

// evictionPause is the time between two questions for a master's eviction policy.
const evictionPause = 10 * time.Second

// evicts reads INFO memory. It returns the policy by which the master may delete locks,
// or "" if it deletes none.
func evicts(memory []byte) string {
	limit, policy := stream.InfoField(memory, "maxmemory"), stream.InfoField(memory, "maxmemory_policy")
	if limit == "" || limit == "0" || policy == "noeviction" {
		return ""
	}
	return policy
}

// askEviction asks a master for its eviction policy, if evictionPause has passed.
func (m *Master) askEviction(now time.Time) {
	if m.Embedded() || now.UnixNano()-m.evictionAsked.Load() < int64(evictionPause) {
		return
	}
	question := stream.Sending{Frames: resp.AppendCommand(nil, "INFO", "memory")}
	if m.database(0).Send(stream.Call{Replies: 1, Asker: stream.AskerFunc(m.heardEviction)}, question, now) {
		m.evictionAsked.Store(now.UnixNano())
	}
}

func (m *Master) heardEviction(replies [][]byte, _ stream.Judgement, err error) {
	if err != nil {
		return
	}
	if memory, ok := resp.ParseBulk(replies[0]); ok {
		m.voters.step(roster.Evicts{Master: m.number, Policy: evicts(memory)}, time.Now())
	}
}

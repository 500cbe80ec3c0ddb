// Package lane keeps the requests of one process about each key in order. It keeps
// clients of one proxy from splitting votes among themselves. It also keeps a late grant,
// or a late undo, from meeting the next lock.
//
// A key has a lane as long as a request has the turn on it or a master owes an answer
// about it. A lane keeps three things:
//
//   - Turns. Requests that may create a lock go one after the other. Enter waits for
//     the turn on all keys of a request. Leave passes it on, after the request is
//     decided and its undo is queued. A request that asks for a lock may be answered
//     while it waits. Refuse does so when a question that was sent meanwhile found the
//     lock held. GiveUp does so when nobody can vote. So a crowd of waiters costs one
//     ballot at a time. A certain release takes no turn, but for a DEL that found nothing to delete and looks again.
//   - Outstanding answers. A master may owe an answer to a question that may create a
//     lock. It then gets no other such question about these keys until that answer is
//     settled: the answer has come, and the undo of a useless grant is queued. AwaitFree
//     waits for that if too few masters would be left.
//   - Order. Send puts questions about a key into the streams of all masters in the same
//     order. Otherwise a release by a constant value could delete a vote on one master
//     that a later acquire has just counted.
//
// A request calls these in this order. One that creates nothing calls Send only:
//
//	turn, err := lanes.Enter(ctx, db, keys, how)
//	defer turn.Leave()
//	lanes.AwaitFree(&question, patience, isWorthwhile)
//	lanes.Send(&question, masters, put)
//	...
//	lanes.Settle(&question, masters that answered)
//
// # Locks
//
// The map of lanes is divided into shards by key. A shard's mutex is held for a few
// lines. The mutexes of several keys are locked from the lowest shard up. Nothing waits
// while one is held, and only Send calls out: its put writes one question into the
// streams' buffers. So a goroutine that holds a shard may lock masters and streams, but
// one that holds those must not lock a shard. Enter waits for several keys in the order
// of their names, so no two requests wait for each other.
//
// The package knows no streams and no answers, and no time but AwaitFree's patience.
package lane

// Package events remembers what happened in this process: to its clients, to locks, to the lock
// masters, and to its configuration. REDLOCK, the page, the metrics and the log read it. It decides
// nothing, and no lock depends on it. Other processes see other clients, so it never knows everything.
//
// # Parts
//
//   - Client (client.go): one client, as other goroutines may see it. Package handler has
//     those that are connected.
//   - A roll (roll.go): the clients that keys name.
//   - Keys (keys.go): for a key, which client took it here, and the last verdicts. They say how long a
//     lock was held and waited for.
//   - Refusals (hot.go): the keys that were refused most in the last minutes.
//   - Commands (commands.go): the lock commands of the last minute, and a log of slow ones like Redis's
//     SLOWLOG.
//   - Masters (masters.go): their states, and what an operator may want to know of. Only Watch looks at them, and
//     counts and logs each new state (watch.go). state.go makes of them the State at one moment, with all
//     sentences about masters that people read.
//   - Metrics: what Prometheus counts (counts.go). A table has a row for each metric (metrics.go). Names are
//     limits, verdicts and others whose series exist from the start. Readings are the numbers that nobody
//     counts, and that are read when the metrics are. Only one goroutine at a time may call ShowSettings,
//     ReloadApplied or ShowHazards.
//   - Throttle (throttle.go): for log lines about what clients can cause at will. It counts the lines that it
//     leaves out.
//
// # Memory
//
// All memory is bounded, and most of it is taken only when it is used: 65,536 keys (10 MB),
// 1,024 refused keys (0.4 MB), 128 slow commands, 50 events of masters, and less than
// 1 kB for each connected client. A client that has left takes less than 600 bytes, mostly its name. The
// last 8,192 that keys name are known (5 MB), and of earlier ones only the id. Where there is no room,
// the oldest entry goes. A key whose lock is held goes last. Keys are remembered as hashes, except
// refused and slow ones, of which the first 256 bytes are kept. A value is remembered as a hash with a
// random seed. It is a secret, and no method returns it.
//
// # What a caller may rely on
//
// Any number of goroutines may call. Remembering allocates nothing, except for a slow command, for an
// event of a master, and for a client's first key, its first refusal and each longer key. No method but
// Watch blocks. There is a mutex for each shard of keys and of refusals, for the roll, for the commands,
// for the masters, and for each client. Each is held for a few lines, and none while another is taken or
// somebody else is called. The package starts no goroutine.
package events

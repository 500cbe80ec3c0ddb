// Package journal remembers what this process saw of its clients and of lock commands, for
// people who ask who holds a lock and why a client was refused. It decides nothing, and no
// lock depends on it. Other processes see other clients, so it never knows everything.
//
// # Parts
//
//   - Client (client.go): one client, as other goroutines may see it. Package clients has
//     those that are connected.
//   - A roll (roll.go): the clients that keys name.
//   - Keys (keys.go): for a key, which client took it here, and the last verdicts.
//   - Refusals (hot.go): the keys that were refused most in the last minutes.
//   - Slow commands (slow.go): a log like Redis's SLOWLOG.
//
// # Memory
//
// All memory is bounded, and most of it is taken only when it is used: 65,536 keys (10 MB),
// 1,024 refused keys (0.4 MB), 128 slow commands, and less than 1 kB for each connected
// client. A client that has left takes less than 600 bytes, mostly its name. The last 8,192
// that keys name are known (5 MB), and of earlier ones only the id. Where there is no room, the
// oldest entry goes. A key whose lock is held goes last. Keys are remembered as hashes, except refused and slow ones, of which the
// first 256 bytes are kept. A value is remembered as a hash with a random seed. It is a
// secret, and no method returns it.
//
// # What a caller may rely on
//
// Any number of goroutines may call. Remembering allocates nothing, except for a slow
// command, and for a client's first key and each longer one. No method blocks or calls out.
// There is a mutex for each shard of keys and of refusals, for the roll, for the slow commands,
// and for each client. Each is held for a few lines, and none while another is taken.
package journal

// Package lease renews locks while the connection that took them is open, and releases
// them when their client ends it. The options renew and on_disconnect of a lock rule ask
// for that, and clients need no change. Without these options nothing here runs.
//
// # What a holder gets
//
// A lock is extended to its own TTL each third of it, by value, for as long as
// its connection is open. The masters decide each renewal as any extension, by quorum and
// with validity left. An undecided renewal is asked again. If none is won until the
// validity of the last one is over, the lock is lost: Holder.lost ends the session, so that
// the client's next command fails.
//
// If a quorum refuses a renewal in time, and no master that answered has a copy, then
// somebody has released the lock, through any proxy or on the masters themselves. The lease
// ends silently. If one master has a copy, nobody knows. The renewal is asked again, and
// prolongs that copy each time. So a client that released its lock through another proxy
// may be disconnected, if that proxy does not reach a master and this one does. A release
// through this proxy ends the lease at once, unless the lock was taken after the release
// began: then the lock may be the next holder's, who has a lease of its own. One key has one
// lease at most.
//
// A release that finds no quorum gives the lock up. Many libraries ignore its error. The lock
// is renewed no more and keeps its TTL, unless its TTL is set anew. Nobody is disconnected
// when it ends. The release must come from the connection that took the lock, or name its
// value, which must have 16 bytes. DEL is a release, also in MULTI, and so is a script that
// certainly deletes by value. Any other command is one if it has deleted the lock on some
// master. If no master ran it, nobody knows what it was for, and the lock is still renewed.
//
// # How long
//
// No renewal is asked for later than renew after the lock was taken. It may first wait for
// another request on the lock, and for answers that masters owe: up to a few times
// master_timeout. So no lock lives longer than renew, that wait and its TTL, whatever its
// client does. After that the lock keeps its TTL, and nobody is disconnected. If the process
// ends, nothing renews the lock any more. A reload applies to existing leases, too.
//
// # What clients change
//
// A TTL that a client sets through this proxy, with the EXPIRE family or a script, is the
// lock's TTL from then on, longer or shorter. A lock that was made permanent is not
// renewed. A longer TTL set elsewhere stays: a renewal never shortens a lock. A shorter
// one set elsewhere is extended again. A client that replaces the value, through any
// proxy, has ended the lease. If another one changes the fields of a hash, the lease goes on as
// long as the masters have the holder's field.
//
// # At the end of the connection
//
// With on_disconnect: release, the lock is deleted by value when its client ends the
// connection, or the network does. It keeps its TTL if the proxy ends the connection: the
// client may still be at work. Masters that are away get the release later, and spare a lock
// that ends later than this one. It keeps its TTL, too, if the value has less than
// redlock.ShortValue bytes: many clients may share such a constant, and the lock may be
// somebody else's by now.
//
// # What is not covered
//
//   - A stopped process looks like one at work as long as its kernel answers. Its locks
//     are renewed up to the cap. Only a fencing token protects what it does afterwards.
//   - A client that repeats failed commands on a new connection does not notice that its
//     session was closed.
//   - A pool that closes the connection under a lock ends the renewals, or the lock.
//   - Locks that are neither strings nor hashes of one holder are not renewed, nor those
//     whose TTL is too short for the masters' timeout, nor those above a limit. They are
//     taken as without renew, counted, and the first of each kind is logged.
//   - A hash whose one field has a count is renewed by the field, if that has 16 bytes or
//     more, as Redisson's "uuid:thread". It keeps its TTL at the end of its connection. Such
//     a client has a pool, so the end of one connection does not show that it has gone.
//   - A sorted set keeps the end of a lock in its scores, by the clock and in the format of
//     its library. A longer TTL of the key would not extend the lock.
//   - If several proxies' clients share one constant value, a lease may renew another
//     client's lock, up to its own cap.
//
// # Goroutines and locks
//
// One goroutine has all leases in a heap, by the time of their next turn. It starts with
// the first lease. It puts each question to the masters on a goroutine of its own, at
// most maxAsking at a time. Close stops all of these and waits for them. Keeper's mutex
// guards the leases. It is held for a few lines. The only calls under it read the current
// rules and limits.
//
// The limits are constants. They bound the renewals in a second, and above them renewals would
// come too late, and clients would lose their connections.
//
// A lease decides by its term, which is a pure value. The values of locks are secrets. They
// are in memory only, never in a log line or an error.
package lease

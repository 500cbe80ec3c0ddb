// Package renew extends a lock for its holder. Its caller knows what the holder stored: the
// value of a string, or the field of a hash, as re-entrant locks have it.
//
// One ballot asks every master for this, in one script (renew.lua): if the lock is the
// holder's, give it at least the TTL. A lock that lives longer there, or for ever, stays as
// it is. The count in a holder's field does not matter: a master that missed a re-entrance
// has the same holder.
//
// The renewal is won if a quorum did so and validity is left. It creates nothing and takes
// nothing back, and a master that missed it does not get it later. So it cannot bring back a
// lock that has ended, nor extend another client's.
package renew

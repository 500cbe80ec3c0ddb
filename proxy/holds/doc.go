// Package holds measures, for each lock rule, how long locks are held and how long
// clients wait for them.
//
// A Times remembers when a lock was taken through this process, and since when a client has
// tried to take a lock in vain. Both tables have a fixed size. If one is full, the oldest of a
// few entries gives way, so under very many locks the longest times may be missed. An entry
// is a hash of the key: it holds neither keys nor values. Noting costs no allocation.
//
// A hold ends with a release through this process. A lock that ended by its TTL, or that was
// released through another process, is not counted. A wait begins with a client's first try
// in vain and ends with its grant. A client that has not tried for retryPause has given up.
// A lock that is granted at once has waited as long as its command took.
//
// All goroutines may use a Times. It has one mutex for each table, held for one entry. The
// package starts no goroutine.
package holds

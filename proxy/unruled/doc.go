// Package unruled finds locks that no rule names. A key on which clients do what locks do, and which goes to the
// upstream all the same, is on one server only. A wrong rule says nothing of itself; this package does.
//
// # What a lock looks like
//
// A client takes a key only if nobody has it, and later gives it back. Neither half alone is a lock: SET NX EX
// without a release is an idempotency key, a script that counts is a rate limit. So a Watch remembers for a while
// who took which key, and reports a use when the second half comes:
//
//	taken by                      given back by
//	SET NX, SETNX                 a script that compares and deletes or extends, or whose text stays unknown
//	a script that creates a key,  another script that deletes it
//	with an end, on a condition
//	any of these                  DELEX IFEQ, DELIFEQ, SET IFEQ; DEL or UNLINK while the client watches keys
//	SET NX with a TTL, SETNX      DEL or UNLINK by the connection that took it
//
// Writes that ask for no holder (SET without a condition) are sampled: where a pattern matches their keys, its rule says
// that it matches other data, too.
//
// What a script does is read from its text (shape.go). That is advice, and no vote depends on it.
//
// # From keys to rules
//
// A key becomes a pattern: digits, hexadecimal numbers and UUIDs become a star, and what is long is cut
// (pattern.go). Patterns that differ in one word only are merged once there are several of them. A Found is one
// pattern, with the rule to write.
//
// # What a caller may rely on
//
// See is called for every SET and DEL that is forwarded, so it asks no clock, takes no lock and allocates nothing, until
// a key that was taken is given back. Then it holds one mutex for a few lines and during no I/O, and it allocates only
// for a pattern that is new. All memory is bounded: by a table of recent acquires, where a new key makes an older
// one be forgotten, and by the number of patterns. A Watch reads no reply, so it takes a refused acquire for one that
// was granted, unless it knows the holder. A key seems to be taken for some seconds longer than its TTL. A Watch keeps no
// value, and one key of each pattern, which it shows to nobody. Any number of goroutines may use a Watch. It starts none.
package unruled

// Package mend makes copies of a lock equal again, in the background.
//
// Copies of a key may differ, or be on too few masters for anybody to hold the lock
// (strays): a request died, a late grant arrived after the lock was released
// elsewhere, or plain writes crossed. Such copies would stay until they expire.
//
// A request that finds such copies calls Mend. The Mender looks at the copies twice,
// with more time between than any ballot of any process lasts. Then it deletes strays
// that have not changed. If all masters vote, it makes other unchanged copies equal:
// to what a quorum has, or else to what unites all (effect.Unite), or to the copy that most
// masters have.
//
// What it makes of counters is never behind a number that a client was told (package run says why).
//
// A caller may rely on this:
//
//   - Mend does not wait, and a key is mended once at a time. Nor does a caller wait for the
//     result: that takes longer than many clients wait for an answer.
//   - The Mender changes a copy only if it still is as it was seen, byte for byte and
//     with its expiry. Meanwhile no other request of this process creates a copy.
//   - If copies change between the looks, the Mender looks a few times more. Then it
//     leaves them alone.
//   - The number of keys that are mended at a time is bounded. For more keys Mend does
//     nothing, and a later request will find them again.
package mend

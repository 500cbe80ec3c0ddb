// Package token gives fencing tokens to holders of locks. A holder passes its token to the
// resource that the lock protects. The resource refuses a token that is smaller than one
// that it has seen. So a holder that was paused until its lock ended can do no harm.
//
// Only the holder of the lock gets a token: its value is on a quorum, with validity left.
// Each token is larger than every token that any process was given for this set of masters
// before it was asked for. There is one exception (below).
//
// # How
//
// Each master records the largest token that it knows, at the end of its marker. One
// ballot asks every master for this, in one script (token.lua): if the key has the value,
// raise the record to a certain token, if that is larger than the record. The token is
// given if a quorum has raised its record. Two quorums share a master, and that master
// raises each token once. So no token is given twice, and none that is smaller than one
// given before. If too few raised it, the next ballot tries a token above all that it has
// read. A process tries the token after the last one that it knows. So one ballot is mostly
// enough.
//
// A master that may have forgotten its record learns it before it votes again. Package
// roster has the rules, and its model checks them.
//
// The exception: too few other masters can tell the record. More forget at once than a
// minority, or one is dead and another one forgets. Then tokens go on from the wall clock of
// the process that writes the marker. If that clock is behind the one at which they began, a
// token may be given twice, or a smaller one later. So keep the clocks of all processes in
// step. The same happens after more than a thousand tokens a second.
//
// # What a caller may rely on
//
// Any goroutine may call Give. Requests do not wait for each other. One that is outrun by
// others tries again for two seconds, and then says so. Give logs nothing and keeps no
// value. It takes back nothing: a token that was raised and not given is left out.
package token

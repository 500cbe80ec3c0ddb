// Package inspect shows people which locks the masters hold. It changes nothing, and nothing
// decides by it.
//
// Look reads what each master holds under some keys, by one ballot. Holding says what that
// comes to. Walk lists keys slowly, so that no lock command is held up: it asks for some keys
// (package scan), looks at sixteen at a time, waits for a moment, and asks again.
//
// Look first asks how large the values are (MEMORY USAGE), and reads none that is too large:
// of it only the type and the TTL are known, and Copy.Large says so.
//
// The value of a lock is a secret. Copy.Digest identifies it, and Copy.Text is for the
// comparison with what a caller remembers.
//
// Any goroutine may use a Reader. It starts no goroutine and has no lock.
package inspect

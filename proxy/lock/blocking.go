package lock

import (
	"bytes"
	"context"
	"math"
	"strconv"
	"time"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

// BLPOP and its like wait on lock keys. The masters run each command as a MULTI, in which these
// commands answer nil at once. So a command that gets nothing stands in the line of its keys
// (lines.go), and is tried again when its turn comes. It ends when it gets something, when
// its timeout passes or when its client goes.

const (
	// undecidedMost is the time for which a command goes on trying without a quorum
	// for its answer. Commands of several proxies that wait for one list meet each other's votes and
	// lack a quorum for moments. Unreachable masters cause it for longer.
	undecidedMost = 2 * time.Second
	// strays is a number of tries in quick succession that got nothing. After them,
	// elements on too few masters count as stray and are
	// scrapped. Each try that puts an element back calls for the next try. Another
	// client's push reaches the other masters before that many tries end.
	strays = 32
	// succession is the time between two such tries.
	succession = 50 * time.Millisecond
)

// runBlocking runs a command that may wait.
func (p *Plane) runBlocking(ctx context.Context, r redlock.RunRequest) redlock.Outcome {
	var (
		o         redlock.Outcome
		result    tryResult
		ended     time.Time // when the last try ended; zero: there was none
		undecided time.Time // when the tries without a quorum began; zero: the last one had a quorum
		quick     int       // tries in quick succession
	)
	try := func() tryResult {
		if quick++; time.Since(ended) >= succession {
			quick = 0
		}
		r.Scrap = quick%(strays+1) == strays
		o = p.Locker.Run(ctx, r)
		first := ended.IsZero()
		ended = time.Now()
		switch {
		case o.Verdict == redlock.NoQuorum:
			if undecided.IsZero() {
				undecided = ended
			}
			if result = tryAgain; ended.Sub(undecided) >= undecidedMost {
				result = tryUndecided
			}
			return result
		case isNull(o.Reply), !first && bytes.HasPrefix(o.Reply, []byte("-WRONGTYPE")):
			result = tryRefused // a key that changed to another type does not end a wait that has begun
		default:
			result = tryUndecided
		}
		undecided = time.Time{}
		return result
	}
	kind, keys := waitsOn(&r)
	if !p.lines.serve(ctx, waitRequest{DB: r.DB, Keys: keys, Kind: kind, Wait: timeoutOf(r.Args), AtOnce: true}, try) {
		try() // its time was over before its turn came
	}
	if result == tryUndecided {
		return o
	}
	// The reply after the timeout is a null array, even if the command's own null is another. Without a
	// quorum nobody knows whether there was something: the client gets an error (answer.append).
	if o.Reply = []byte(nullArray); r.RESP3 {
		o.Reply = []byte(nullRESP3)
	}
	return o
}

const (
	nullArray = "*-1\r\n"
	nullRESP3 = "_\r\n"
)

func isNull(reply []byte) bool {
	return string(reply) == nullArray || string(reply) == "$-1\r\n" || string(reply) == nullRESP3
}

// waitsOn returns the keys from which a command may take something. In the line of a key that it
// only writes, it would block the commands behind it. A module's command has none, because nobody
// knows what it takes.
func waitsOn(r *redlock.RunRequest) (waitKind, [][]byte) {
	switch name := r.Args[0]; {
	case wire.IsWord(name, "BLMOVE"), wire.IsWord(name, "BRPOPLPUSH"):
		return forElements, r.Args[1:2]
	case wire.IsWord(name, "BLPOP"), wire.IsWord(name, "BRPOP"), wire.IsWord(name, "BLMPOP"):
		return forElements, r.Keys
	case wire.IsWord(name, "BZPOPMIN"), wire.IsWord(name, "BZPOPMAX"), wire.IsWord(name, "BZMPOP"):
		return forMembers, r.Keys
	}
	return forElements, nil
}

const forEver = time.Duration(math.MaxInt64)

// timeoutOf parses the timeout of a blocking command. It is 0 if it is invalid, so that the masters are
// asked once, who refuse it in their own words.
func timeoutOf(args [][]byte) time.Duration {
	if wire.IsWord(args[0], "BLMPOP") || wire.IsWord(args[0], "BZMPOP") {
		return parseSeconds(args[1])
	}
	return parseSeconds(args[len(args)-1])
}

// readBlocks tells whether BLOCK is among the options of XREAD or XREADGROUP, which end
// at STREAMS. Two values follow GROUP and one follows COUNT.
func readBlocks(args [][]byte) bool {
	for i := 1; i < len(args) && !wire.IsWord(args[i], "STREAMS"); i++ {
		switch {
		case wire.IsWord(args[i], "BLOCK"):
			return true
		case wire.IsWord(args[i], "GROUP"):
			i += 2
		case wire.IsWord(args[i], "COUNT"):
			i++
		}
	}
	return false
}

// parseSeconds parses a timeout in seconds as strtold does, and rounds it up to whole
// milliseconds. 0 means for ever. It returns 0 for what is no timeout.
func parseSeconds(arg []byte) time.Duration {
	text := string(arg)
	if len(text) > 1 && (text[1] == 'x' || text[1] == 'X') && !bytes.ContainsAny(arg, "pP") {
		text += "p0" // a hexadecimal number needs its exponent in Go, not in C
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds >= 0) || bytes.ContainsRune(arg, '_') { // a NaN is not >= 0
		return 0
	}
	milliseconds := math.Ceil(seconds * 1000)
	if milliseconds == 0 || milliseconds >= float64(forEver/time.Millisecond) {
		return forEver
	}
	return time.Duration(milliseconds) * time.Millisecond
}

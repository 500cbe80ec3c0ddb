package blocking

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

const (
	pauseLeast = 50 * time.Millisecond
	pauseMost  = 100 * time.Millisecond
	// net is the longest wait for a change. It is a safety net for a change that was
	// lost for an unforeseen reason.
	net = time.Second
	// undecidedMost is the time for which a command goes on trying without a quorum
	// for its answer. Many commands that wait for one list meet each other's votes and
	// lack a quorum for moments. Unreachable masters cause it for longer.
	undecidedMost = 2 * time.Second
	// strays is a number of tries in a row that a change called for and that got
	// nothing. After them, elements on too few masters count as stray and are
	// scrapped. Each try that puts an element back calls for the next try. Another
	// client's push reaches the other masters before that many tries end.
	strays = 32
)

// Run runs a command that may wait. Each call of try asks the masters once.
func (r *Room) Run(ctx context.Context, request redlock.RunRequest, try func(context.Context, redlock.RunRequest) redlock.Outcome) redlock.Outcome {
	timeout, blocks := timeoutOf(request.Args)
	if !blocks {
		return try(ctx, request) // the masters refuse an invalid timeout in their own words
	}
	started := time.Now()
	joining, cancel := context.WithTimeout(ctx, timeout)
	w := r.join(joining, &request) // before the first try, so that no change falls between
	cancel()
	defer r.leave(w)
	o := try(ctx, request)
	if !staysBlocked(o) {
		return o
	}
	var undecided time.Time // when the tries without a quorum began; zero: the last try had one
	called := 0             // tries in a row that a change called for
	for {
		switch {
		case o.Verdict != redlock.NoQuorum:
			undecided = time.Time{}
		case undecided.IsZero():
			undecided = time.Now()
		case time.Since(undecided) >= undecidedMost:
			return o
		}
		tried := time.Now()
		left := timeout - tried.Sub(started)
		if left <= 0 || !r.awaitChange(ctx, w, left, o.Verdict) {
			return timedOut(o, request.RESP3)
		}
		if called++; time.Since(tried) >= pauseLeast {
			called = 0
		}
		request.Scrap = called > 0 && called%strays == 0
		// A key that changed to another type does not end a wait that has begun.
		if o = try(ctx, request); !staysBlocked(o) && !bytes.HasPrefix(o.Reply, []byte("-WRONGTYPE")) {
			return o
		}
	}
}

// staysBlocked tells whether a try with the outcome o leaves its client waiting.
func staysBlocked(o redlock.Outcome) bool {
	null := string(o.Reply) == nullArray || string(o.Reply) == "$-1\r\n" || string(o.Reply) == nullRESP3
	return o.Err == "" && (null || o.Verdict == redlock.NoQuorum)
}

// timedOut is the outcome after the timeout if the last try ended with o. It is o
// itself without a quorum, because then nobody knows whether there was something.
// Otherwise it is a null array, even if the command's own null is another.
func timedOut(o redlock.Outcome, resp3 bool) redlock.Outcome {
	switch {
	case o.Verdict == redlock.NoQuorum:
	case resp3:
		o.Reply = []byte(nullRESP3)
	default:
		o.Reply = []byte(nullArray)
	}
	return o
}

// awaitChange returns true when another try makes sense: the keys have changed, the
// time left is over, or a pause is over. The pause is short if the last try had no
// quorum. It returns false if the client has gone. A nil w polls.
func (r *Room) awaitChange(ctx context.Context, w *waiter, left time.Duration, last redlock.Verdict) bool {
	over, undecided := time.After(left), last == redlock.NoQuorum
	for {
		pause := pauseLeast + rand.N(pauseMost-pauseLeast)
		var wake <-chan struct{}
		if w != nil {
			wake = w.wake
			if !undecided && r.available() {
				pause = net - rand.N(net/4)
			}
		}
		select {
		case <-wake:
			return true
		case <-over:
			return true
		case <-ctx.Done():
			return false
		case <-time.After(pause):
			if undecided || w == nil || r.first(w) {
				return true
			}
		}
	}
}

const (
	nullArray = "*-1\r\n"
	nullRESP3 = "_\r\n"
)

const forEver = time.Duration(math.MaxInt64)

// timeoutOf parses the timeout of a blocking command. blocks is false if the timeout is
// invalid.
func timeoutOf(args [][]byte) (timeout time.Duration, blocks bool) {
	if wire.IsWord(args[0], "BLMPOP") || wire.IsWord(args[0], "BZMPOP") {
		return parseSeconds(args[1])
	}
	return parseSeconds(args[len(args)-1])
}

// ReadBlocks tells whether BLOCK is among the options of XREAD or XREADGROUP, which end
// at STREAMS. Two values follow GROUP and one follows COUNT.
func ReadBlocks(args [][]byte) bool {
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
// milliseconds. 0 means for ever.
func parseSeconds(arg []byte) (timeout time.Duration, ok bool) {
	text := string(arg)
	if len(text) > 1 && (text[1] == 'x' || text[1] == 'X') && !bytes.ContainsAny(arg, "pP") {
		text += "p0" // a hexadecimal number needs its exponent in Go, not in C
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(seconds) || seconds < 0 || bytes.ContainsRune(arg, '_') {
		return 0, false
	}
	milliseconds := math.Ceil(seconds * 1000)
	if milliseconds == 0 || milliseconds >= float64(forEver/time.Millisecond) {
		return forEver, true
	}
	return time.Duration(milliseconds) * time.Millisecond, true
}

package proxy

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

// A command in an examined run never blocks: it stands in a MULTI, where
// BLPOP and its like answer nil at once. So a blocking command on lock keys is
// tried again when its keys have changed, until it gets something, its timeout
// passes or its client goes. Where the masters do not tell of changes it polls.
const (
	blockingPauseLeast = 50 * time.Millisecond
	blockingPauseMost  = 100 * time.Millisecond
	// blockingNet is how long a command waits for a change at most, lest one is
	// lost for a reason that nobody has thought of.
	blockingNet = time.Second
	// blockingDoubt is how long a command goes on trying where no quorum can
	// say whether there is something for it. Many who wait for one list meet
	// each other's votes and get that answer in passing; masters that are away
	// give it for longer.
	blockingDoubt = 2 * time.Second
	// blockingStrays is how many tries in a row, each called for by a change, get
	// nothing before what they find on too few masters is given up for stray. What
	// they put back there calls for the next try, and somebody else's push reaches
	// the other masters sooner than so many tries end.
	blockingStrays = 32
)

// runBlocking runs a command that may wait.
func (p *lockPlane) runBlocking(ctx context.Context, request redlock.RunRequest) redlock.Outcome {
	timeout, blocks := blockingTimeout(request.Args)
	if !blocks {
		return p.locker.Run(ctx, request) // the masters say what is wrong with the timeout, if anything is
	}
	started := time.Now()
	var w *waiter
	if p.waits != nil && p.waits.available() {
		joining, cancel := context.WithTimeout(ctx, timeout)
		w = p.waits.join(joining, &request) // before the first try, so that no change falls between
		cancel()
		defer p.waits.leave(w)
	}
	o := p.locker.Run(ctx, request)
	if !staysBlocked(o) {
		return o
	}
	var doubtful time.Time // since when, without a break, there was no quorum
	called := 0            // tries in a row that a change called for
	for {
		switch {
		case o.Verdict != redlock.NoQuorum:
			doubtful = time.Time{}
		case doubtful.IsZero():
			doubtful = time.Now()
		case time.Since(doubtful) >= blockingDoubt:
			return o
		}
		tried := time.Now()
		left := timeout - tried.Sub(started)
		if left <= 0 || !p.awaitChange(ctx, w, left, !doubtful.IsZero()) {
			return timedOut(o, request.RESP3)
		}
		if called++; time.Since(tried) >= blockingPauseLeast {
			called = 0
		}
		request.Scrap = called > 0 && called%blockingStrays == 0
		// A key that has become of another type leaves who waits already waiting.
		if o = p.locker.Run(ctx, request); !staysBlocked(o) && !bytes.HasPrefix(o.Reply, []byte("-WRONGTYPE")) {
			return o
		}
	}
}

// staysBlocked tells whether its first try leaves a client waiting.
func staysBlocked(o redlock.Outcome) bool {
	return o.Err == "" && (o.Verdict == redlock.NoQuorum || isNullReply(o.Reply))
}

// timedOut is the answer when the time is over and the last try came to o: a
// null, also where the command's own null is another, unless nobody can know
// whether there was something.
func timedOut(o redlock.Outcome, resp3 bool) redlock.Outcome {
	if o.Verdict == redlock.NoQuorum {
		return o
	}
	o.Reply = []byte(nullArray)
	if resp3 {
		o.Reply = []byte(nullRESP3)
	}
	return o
}

// awaitChange returns when another try is worth it: the keys have changed, or
// left or a pause is over, which is short where the last try is in doubt. False:
// the client has gone. A nil w polls.
func (p *lockPlane) awaitChange(ctx context.Context, w *waiter, left time.Duration, doubt bool) bool {
	over := time.NewTimer(left)
	defer over.Stop()
	for {
		pause := blockingPauseLeast + rand.N(blockingPauseMost-blockingPauseLeast)
		var wake <-chan struct{}
		if w != nil {
			wake = w.wake
			if !doubt && p.waits.available() {
				pause = blockingNet - rand.N(blockingNet/4)
			}
		}
		again := time.NewTimer(pause)
		select {
		case <-wake:
			again.Stop()
			return true
		case <-over.C:
			again.Stop()
			return true
		case <-ctx.Done():
			again.Stop()
			return false
		case <-again.C:
			if doubt || w == nil || p.waits.first(w) {
				return true
			}
		}
	}
}

const (
	nullArray = "*-1\r\n"
	nullRESP3 = "_\r\n"
)

func isNullReply(reply []byte) bool {
	return string(reply) == nullArray || string(reply) == "$-1\r\n" || string(reply) == nullRESP3
}

const forEver = time.Duration(math.MaxInt64)

// blockingTimeout finds how long a blocking command may wait. blocks is false
// for one that does not wait: readers of streams, which are refused BLOCK, and
// one with a timeout that is none.
func blockingTimeout(args [][]byte) (timeout time.Duration, blocks bool) {
	switch {
	case len(args) < 3:
		return 0, false
	case wire.IsWord(args[0], "XREAD"), wire.IsWord(args[0], "XREADGROUP"):
		return 0, false
	case wire.IsWord(args[0], "BLMPOP"), wire.IsWord(args[0], "BZMPOP"):
		return parseSeconds(args[1])
	}
	return parseSeconds(args[len(args)-1])
}

// waitsForEntries finds BLOCK among the options of XREAD and XREADGROUP, which
// end at STREAMS. GROUP has two values behind it and COUNT has one.
func waitsForEntries(args [][]byte) bool {
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

// parseSeconds reads a timeout in seconds as strtold does, rounded up to whole
// milliseconds.
func parseSeconds(arg []byte) (timeout time.Duration, ok bool) {
	text := string(arg)
	if len(text) > 1 && (text[1] == 'x' || text[1] == 'X') && !bytes.ContainsAny(arg, "pP") {
		text += "p0" // a hexadecimal number needs its exponent in Go, not in C
	}
	if bytes.ContainsRune(arg, '_') {
		return 0, false
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(seconds) || seconds < 0 {
		return 0, false
	}
	return blockingDuration(math.Ceil(seconds * 1000)), true
}

// blockingDuration: a timeout of 0 means without end.
func blockingDuration(milliseconds float64) time.Duration {
	if milliseconds == 0 || milliseconds >= float64(forEver/time.Millisecond) {
		return forEver
	}
	return time.Duration(milliseconds) * time.Millisecond
}

package proxy

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"redlock-proxy/redlock"
)

// A command in an examined run never blocks: it stands in a MULTI, where
// BLPOP and its like answer nil at once. So a blocking command on lock keys is
// tried again until it gets something, its timeout passes or its client goes.
// XREAD BLOCK with the id $ means "from this try on" each time and so misses
// what arrives between two tries.
const (
	blockingPauseLeast = 50 * time.Millisecond
	blockingPauseMost  = 100 * time.Millisecond
)

// runBlocking repeats a blocking command whose first try answered nil.
func (p *lockPlane) runBlocking(ctx context.Context, request redlock.RunRequest) redlock.Outcome {
	started := time.Now()
	for {
		o := p.locker.Run(ctx, request)
		if o.Verdict == redlock.NoQuorum || o.Err != "" || !isNullReply(o.Reply) {
			return o
		}
		// A nil says that the masters found nothing wrong with the timeout.
		timeout, blocks := blockingTimeout(request.Args)
		if !blocks {
			return o
		}
		if !request.RESP3 {
			// A timeout has this null, also where the command's own is another.
			o.Reply = []byte(nullArray)
		}
		left := timeout - time.Since(started)
		if left <= 0 || ctx.Err() != nil {
			return o
		}
		pause := time.NewTimer(min(left, blockingPauseLeast+rand.N(blockingPauseMost-blockingPauseLeast)))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return o
		}
	}
}

const nullArray = "*-1\r\n"

func isNullReply(reply []byte) bool {
	return string(reply) == nullArray || string(reply) == "$-1\r\n" || string(reply) == "_\r\n"
}

const forEver = time.Duration(math.MaxInt64)

// blockingTimeout finds how long a blocking command may wait. blocks is false
// for one that does not ask to wait, such as XREAD without BLOCK.
func blockingTimeout(args [][]byte) (timeout time.Duration, blocks bool) {
	switch {
	case len(args) < 3:
		return 0, false
	case isWord(args[0], "XREAD"), isWord(args[0], "XREADGROUP"):
		return streamTimeout(args)
	case isWord(args[0], "BLMPOP"), isWord(args[0], "BZMPOP"):
		return parseSeconds(args[1])
	}
	return parseSeconds(args[len(args)-1])
}

// streamTimeout finds BLOCK milliseconds among the options, which end at
// STREAMS; every other option there has its value behind it, NOACK excepted.
func streamTimeout(args [][]byte) (timeout time.Duration, blocks bool) {
	for i := 1; i+1 < len(args) && !isWord(args[i], "STREAMS"); i++ {
		switch {
		case isWord(args[i], "BLOCK"):
			i++
			n, ok := parseRedisInteger(args[i])
			if !ok || n < 0 {
				return 0, false
			}
			timeout, blocks = blockingDuration(float64(n)), true
		case isWord(args[i], "GROUP"):
			i += 2
		case isWord(args[i], "COUNT"):
			i++
		}
	}
	return timeout, blocks
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

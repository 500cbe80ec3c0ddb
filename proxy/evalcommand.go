package proxy

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
	"redlock-proxy/redlock/resp"
)

// checkEval makes the checks that Redis makes of EVAL, EVALSHA and their _RO
// forms before it looks at the script, in Redis's order. It returns the whole
// error reply, empty if there is nothing to object to.
func checkEval(args [][]byte, bySHA bool) string {
	if bySHA && len(args[1]) != hex.EncodedLen(sha1.Size) {
		return errorNoScript
	}
	keys, ok := resp.ParseDecimal(args[2])
	switch {
	case !ok:
		return wire.ErrNotInteger
	case keys > int64(len(args)-3):
		return errorTooManyKeys
	case keys < 0:
		return errorNegativeKeys
	}
	return ""
}

// eval runs a script on the masters as an examined run. The text of an EVAL
// becomes known to every client's EVALSHA, whether it compiles or not: what
// does not is refused by the masters either way.
func (p *lockPlane) eval(ctx context.Context, call lockCall, bySHA bool) answer {
	if reply := checkEval(call.args, bySHA); reply != "" {
		return rejection(redlock.KindRun, reply)
	}
	request := p.runRequest(call)
	if !bySHA {
		p.scripts.register(call.args[1])
		return ran(p.runTaking(ctx, request))
	}
	// The masters may have a script that nobody sent here, from another proxy,
	// but then nobody here can tell a release, which is never held back, from an
	// acquire, which takes its turn. The client sends the text after NOSCRIPT.
	text, known := p.scripts.get(call.args[1])
	if !known {
		return rejection(redlock.KindRun, errorNoScript)
	}
	request.Scripts = [][]byte{text}
	a := ran(p.runTaking(ctx, request))
	if isNoScript(a.outcome) {
		// Some clients compare the whole line, and servers differ in it.
		return rejection(redlock.KindRun, errorNoScript)
	}
	return a
}

func isNoScript(o redlock.Outcome) bool {
	if o.Verdict == redlock.NoQuorum {
		return false
	}
	return bytes.HasPrefix(o.Reply, []byte("-NOSCRIPT ")) || bytes.HasPrefix([]byte(o.Err), []byte("NOSCRIPT "))
}

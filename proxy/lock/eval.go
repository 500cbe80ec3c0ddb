package lock

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"strings"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
	"redlock-proxy/redlock/resp"
)

// checkEval checks EVAL, EVALSHA and their _RO forms as Redis does before it looks at
// the script, in Redis's order. It returns the whole error reply, or empty if the
// command passes.
func checkEval(args [][]byte, bySHA bool) wire.Error {
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

// eval runs a script on the masters as an examined run. It registers the text of an
// EVAL for every client's EVALSHA, even if the text does not compile. The masters
// refuse such a text either way.
func (p *Plane) eval(ctx context.Context, call Command, bySHA bool) answer {
	if reply := checkEval(call.Args, bySHA); reply != "" {
		return rejection(redlock.KindRun, reply)
	}
	request := p.runRequest(call)
	if !bySHA {
		p.Scripts.Register(call.Args[1])
		return p.runScript(ctx, call, request, call.Args[1])
	}
	// The masters may have a script from another proxy that no client sent here. But
	// without its text this proxy cannot tell a release, which never waits, from an
	// acquire, which takes its turn. The client sends the text after NOSCRIPT.
	text, known := p.Scripts.Get(call.Args[1])
	if !known {
		return rejection(redlock.KindRun, errorNoScript)
	}
	request.Scripts = [][]byte{text}
	a := p.runScript(ctx, call, request, text)
	if isNoScript(a.outcome) {
		// Some clients compare the whole line, and servers' texts differ.
		return rejection(redlock.KindRun, errorNoScript)
	}
	return a
}

func isNoScript(o redlock.Outcome) bool {
	return o.Verdict != redlock.NoQuorum && (bytes.HasPrefix(o.Reply, []byte("-NOSCRIPT ")) || strings.HasPrefix(o.Err, "NOSCRIPT "))
}

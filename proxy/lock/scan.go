package lock

import (
	"context"
	"slices"
	"strconv"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
	"redlock-proxy/redlock/resp"
)

// HSCAN, SSCAN and ZSCAN answer the whole collection in one page, as Redis does for a small
// one. A cursor counts places in the hash table of one server, and those of the others
// differ. limits.lock_reply bounds the page.

// A collectionScan is the options of HSCAN, SSCAN or ZSCAN.
type collectionScan struct {
	pattern  []byte // nil: all elements
	noValues bool   // HSCAN with NOVALUES
}

// scanElements carries out HSCAN, SSCAN and ZSCAN. Like Redis it looks at the options only if
// the key exists.
func (p *Plane) scanElements(ctx context.Context, call Command, name string) answer {
	cursor, err := strconv.ParseUint(string(call.Args[2]), 10, 64)
	if err != nil {
		return rejection(redlock.KindRun, errorCursor)
	}
	r := p.runRequest(call)
	r.RESP3 = false // the answer is the same in both protocols
	key, group := call.Args[1], 2
	switch name {
	case "hscan":
		r.Args = [][]byte{[]byte("HGETALL"), key}
	case "sscan":
		r.Args, group = [][]byte{[]byte("SMEMBERS"), key}, 1
	case "zscan":
		r.Args = [][]byte{[]byte("ZRANGE"), key, []byte("0"), []byte("-1"), []byte("WITHSCORES")}
	}
	a := p.examine(ctx, r, call.Leases)
	if a.outcome.Verdict != redlock.Won || resp.IsError(a.outcome.Reply) {
		return a
	}
	elements, err := resp.Elements(a.outcome.Reply)
	if err != nil {
		a.outcome.Verdict = redlock.NoQuorum
		return a
	}
	options, refusal := parseCollectionScan(name, call.Args[3:])
	if refusal != "" && len(elements) > 0 {
		return rejection(redlock.KindRun, refusal)
	}
	if cursor != 0 {
		elements = nil // an earlier page had all
	}
	a.outcome.Reply = options.appendPage(nil, elements, group)
	return a
}

func parseCollectionScan(name string, args [][]byte) (s collectionScan, refusal wire.Error) {
	for i := 0; i < len(args); i++ {
		hasValue := i+1 < len(args)
		switch {
		case wire.IsWord(args[i], "COUNT") && hasValue:
			i++
			count, ok := resp.ParseDecimal(args[i])
			switch {
			case !ok:
				return s, wire.ErrNotInteger
			case count < 1:
				return s, wire.ErrSyntax
			}
		case wire.IsWord(args[i], "MATCH") && hasValue:
			i++
			s.pattern = args[i]
		case wire.IsWord(args[i], "NOVALUES") && name == "hscan":
			s.noValues = true
		default:
			return s, wire.ErrSyntax
		}
	}
	return s, ""
}

// appendPage appends the last page of a scan. Each group of elements begins with the one
// that MATCH is about.
func (s collectionScan) appendPage(dst []byte, elements [][]byte, group int) []byte {
	var page [][]byte
	for g := range slices.Chunk(elements, group) {
		text, _ := resp.ParseBulk(g[0])
		switch {
		case s.pattern != nil && !resp.GlobMatch(string(s.pattern), text):
		case s.noValues:
			page = append(page, g[0])
		default:
			page = append(page, g...)
		}
	}
	dst = resp.AppendBulk(resp.AppendArray(dst, 2), "0")
	dst = resp.AppendArray(dst, len(page))
	for _, element := range page {
		dst = append(dst, element...)
	}
	return dst
}

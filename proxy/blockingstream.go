package proxy

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"redlock-proxy/redlock"
)

// readFromNow returns the arguments of XREAD with the id $, which means "after
// what is there now", replaced by what that comes to, so that nothing is missed
// between two tries. Any other command's arguments stay as they are, and so does
// an id that the masters cannot tell.
func (p *lockPlane) readFromNow(ctx context.Context, request redlock.RunRequest) [][]byte {
	args := request.Args
	streams := slices.IndexFunc(args, func(arg []byte) bool { return isWord(arg, "STREAMS") })
	if !isWord(args[0], "XREAD") || streams < 0 {
		return args
	}
	args = slices.Clone(args)
	names := args[streams+1:]
	for i, n := 0, len(names)/2; i < n; i++ {
		if string(names[n+i]) != "$" {
			continue
		}
		o := p.locker.Run(ctx, redlock.RunRequest{
			DB: request.DB, Keys: names[i : i+1 : i+1], ReadOnly: true,
			Args: [][]byte{[]byte("XREVRANGE"), names[i], []byte("+"), []byte("-"), []byte("COUNT"), []byte("1")},
		})
		if last, ok := lastEntry(o); ok {
			names[n+i] = last
		}
	}
	return args
}

// lastEntry reads the id in XREVRANGE's reply of at most one entry.
func lastEntry(o redlock.Outcome) (id []byte, ok bool) {
	if o.Verdict == redlock.NoQuorum || o.Err != "" {
		return nil, false
	}
	if string(o.Reply) == "*0\r\n" {
		return []byte("0-0"), true
	}
	rest, ok := strings.CutPrefix(string(o.Reply), "*1\r\n*2\r\n$")
	if !ok {
		return nil, false
	}
	length, rest, _ := strings.Cut(rest, "\r\n")
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 || n > len(rest) {
		return nil, false
	}
	return []byte(rest[:n]), true
}

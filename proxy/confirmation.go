package proxy

import (
	"bytes"

	"redlock-proxy/redlock/resp"
)

// family is a kind of subscription. Redis counts channels and patterns together.
type family uint8

const (
	familyChannel family = iota
	familyPattern
	familyShard
)

// confirmationOf tells which family a confirmation is for.
func confirmationOf(name []byte) (of family, adds, ok bool) {
	switch string(name) {
	case "subscribe":
		return familyChannel, true, true
	case "unsubscribe":
		return familyChannel, false, true
	case "psubscribe":
		return familyPattern, true, true
	case "punsubscribe":
		return familyPattern, false, true
	case "ssubscribe":
		return familyShard, true, true
	case "sunsubscribe":
		return familyShard, false, true
	}
	return 0, false, false
}

// command is the command of that family, and the first word of what confirms it.
func (f family) command(adds bool) string {
	names := [...][2]string{{"unsubscribe", "subscribe"}, {"punsubscribe", "psubscribe"}, {"sunsubscribe", "ssubscribe"}}
	if adds {
		return names[f][1]
	}
	return names[f][0]
}

// confirmation is what one value has told of subscriptions: that some begin or
// end, or that a command for them was refused as a whole.
type confirmation struct {
	family  family
	adds    bool
	refused bool
	names   []string // none where something ends: all of the family
}

func isMessage(name []byte) bool {
	switch string(name) {
	case "message", "pmessage", "smessage":
		return true
	}
	return false
}

// firstElement reads the name that stands first in an array or push, nil if
// there is none that could matter. known is false while bytes are missing.
func firstElement(p []byte) (name []byte, known bool) {
	header := bytes.IndexByte(p, '\n')
	if header < 0 {
		return nil, len(p) > 24
	}
	if p[1] == '-' || p[1] == '0' {
		return nil, true
	}
	element := p[header+1:]
	if len(element) == 0 {
		return nil, false
	}
	end := bytes.IndexByte(element, '\n')
	if end < 0 {
		return nil, element[0] != '$' || len(element) > 24
	}
	if element[0] != '$' {
		return nil, true
	}
	length, ok := resp.ParseDecimal(bytes.TrimSuffix(element[1:end], []byte{'\r'}))
	if !ok || length < 0 || length > int64(len("punsubscribe")) {
		return nil, true
	}
	if text := element[end+1:]; int64(len(text)) >= length {
		return text[:length], true
	}
	return nil, false
}

// lastInteger reads the integer with which a value ends.
func lastInteger(tail []byte) (int, bool) {
	colon := bytes.LastIndexByte(tail, ':')
	if colon < 0 {
		return 0, false
	}
	n, ok := resp.ParseDecimal(bytes.TrimSuffix(tail[colon+1:], []byte("\r\n")))
	return int(n), ok
}

package wire

import (
	"bytes"

	"redlock-proxy/redlock/resp"
)

// Family is a kind of subscription. Redis counts channels and patterns together.
type Family uint8

// The families: SUBSCRIBE, PSUBSCRIBE and SSUBSCRIBE.
const (
	FamilyChannel Family = iota
	FamilyPattern
	FamilyShard
)

// ConfirmationOf tells which family a confirmation is for.
func ConfirmationOf(name []byte) (of Family, adds, ok bool) {
	switch string(name) {
	case "subscribe":
		return FamilyChannel, true, true
	case "unsubscribe":
		return FamilyChannel, false, true
	case "psubscribe":
		return FamilyPattern, true, true
	case "punsubscribe":
		return FamilyPattern, false, true
	case "ssubscribe":
		return FamilyShard, true, true
	case "sunsubscribe":
		return FamilyShard, false, true
	}
	return 0, false, false
}

// Command is the command of that family, and the first word of what confirms it.
func (f Family) Command(adds bool) string {
	names := [...][2]string{{"unsubscribe", "subscribe"}, {"punsubscribe", "psubscribe"}, {"sunsubscribe", "ssubscribe"}}
	if adds {
		return names[f][1]
	}
	return names[f][0]
}

// Confirmation is what one value has told of subscriptions: that some begin or
// end, or that a command for them was refused as a whole.
type Confirmation struct {
	Family  Family
	Adds    bool
	Refused bool
	Names   []string // none where something ends: all of the family
}

// IsMessage tells whether a message to a subscriber begins with this name.
func IsMessage(name []byte) bool {
	switch string(name) {
	case "message", "pmessage", "smessage":
		return true
	}
	return false
}

// FirstElement reads the name that stands first in an array or push, nil if
// there is none that could matter. known is false while bytes are missing.
func FirstElement(p []byte) (name []byte, known bool) {
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

// LastInteger reads the integer with which a value ends.
func LastInteger(tail []byte) (int, bool) {
	colon := bytes.LastIndexByte(tail, ':')
	if colon < 0 {
		return 0, false
	}
	n, ok := resp.ParseDecimal(bytes.TrimSuffix(tail[colon+1:], []byte("\r\n")))
	return int(n), ok
}

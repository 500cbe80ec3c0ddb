package wire

import (
	"bytes"

	"redlock-proxy/redlock/resp"
)

// Family is a kind of subscription. Redis counts those to channels and to patterns
// together.
type Family uint8

// The families: SUBSCRIBE, PSUBSCRIBE and SSUBSCRIBE.
const (
	FamilyChannel Family = iota
	FamilyPattern
	FamilyShard
)

// familyCommands end and begin subscriptions, by family. They are also the first words of
// the confirmations.
var familyCommands = [...][2]string{
	FamilyChannel: {"unsubscribe", "subscribe"},
	FamilyPattern: {"punsubscribe", "psubscribe"},
	FamilyShard:   {"sunsubscribe", "ssubscribe"},
}

// ConfirmationOf returns the family of a confirmation whose first word is name, and
// whether the confirmation adds a subscription or ends one. It returns ok as false
// if name begins no confirmation.
func ConfirmationOf(name []byte) (of Family, adds, ok bool) {
	for family, words := range familyCommands {
		if adds = string(name) == words[1]; adds || string(name) == words[0] {
			return Family(family), adds, true
		}
	}
	return 0, false, false
}

// Command returns the name of the family's command that adds or ends subscriptions.
func (f Family) Command(adds bool) string {
	if adds {
		return familyCommands[f][1]
	}
	return familyCommands[f][0]
}

// Confirmation is the content of one value about subscriptions: some begin or end, or
// the server refused the whole command.
type Confirmation struct {
	Family  Family
	Adds    bool
	Refused bool
	Names   []string // if empty and Adds is false: all of the family end
}

// IsMessage tells whether name is the first word of a message to a subscriber.
func IsMessage(name []byte) bool {
	switch string(name) {
	case "message", "pmessage", "smessage":
		return true
	}
	return false
}

// FirstElement returns the name that is the first element of an array or push. p holds
// the beginning of the value. name is nil if the first element is no bulk string, or is
// longer than the first word of any confirmation. known is false while p is too short
// to tell.
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

// LastInteger returns the integer at the end of a value. tail holds the last bytes of
// the value. It returns false if the value does not end with an integer.
func LastInteger(tail []byte) (int, bool) {
	colon := bytes.LastIndexByte(tail, ':')
	if colon < 0 {
		return 0, false
	}
	n, ok := resp.ParseDecimal(bytes.TrimSuffix(tail[colon+1:], []byte("\r\n")))
	return int(n), ok
}

package proxy

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strconv"

	"redlock-proxy/redlock/rdb"
)

// What DUMP gives and RESTORE takes on an embedded server: payloads of Redis 7,
// in the plainest of its encodings, so that a real server can RESTORE them.
// miniredis itself dumps strings only, and as they are.

// payloadVersion is the RDB version of Redis 7.0.
const payloadVersion = 10

// The first byte of a payload, by what TYPE says of the key.
var payloadTypes = map[string]byte{"string": 0, "list": 1, "set": 2, "hash": 4, "zset": 5}

// dumpPayload encodes what a key of that type holds: its string, its list's
// elements, its set's members, its hash's fields each with the value behind
// it, its sorted set's members each with the score. Equal keys make equal
// payloads. False means that there is no such type here.
func dumpPayload(kind string, items []string) ([]byte, bool) {
	first, known := payloadTypes[kind]
	if !known {
		return nil, false
	}
	value := []byte{first}
	switch kind {
	case "string":
		return rdb.Seal(appendPayloadText(value, items[0]), payloadVersion), true
	case "set":
		slices.Sort(items)
	case "hash", "zset":
		items = sortedPairs(items)
	}
	if kind == "hash" || kind == "zset" {
		value = appendPayloadLength(value, len(items)/2)
	} else {
		value = appendPayloadLength(value, len(items))
	}
	for i, item := range items {
		if kind == "zset" && i%2 == 1 {
			score, _ := strconv.ParseFloat(item, 64)
			value = binary.LittleEndian.AppendUint64(value, math.Float64bits(score))
		} else {
			value = appendPayloadText(value, item)
		}
	}
	return rdb.Seal(value, payloadVersion), true
}

// sortedPairs sorts pairs by what is first in each.
func sortedPairs(items []string) []string {
	second := make(map[string]string, len(items)/2)
	for pair := range slices.Chunk(items, 2) {
		second[pair[0]] = pair[1]
	}
	sorted := make([]string, 0, len(items))
	for _, first := range slices.Sorted(maps.Keys(second)) {
		sorted = append(sorted, first, second[first])
	}
	return sorted
}

func appendPayloadLength(dst []byte, n int) []byte {
	switch {
	case n < 1<<6:
		return append(dst, byte(n))
	case n < 1<<14:
		return append(dst, 1<<6|byte(n>>8), byte(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, 2<<6), uint32(n))
}

func appendPayloadText(dst []byte, text string) []byte {
	return append(appendPayloadLength(dst, len(text)), text...)
}

// readPayload is dumpPayload's opposite. It refuses encodings that dumpPayload
// does not write.
func readPayload(dump string) (kind string, items []string, refusal string) {
	value, version, ok := rdb.Open([]byte(dump))
	if !ok || version > payloadVersion {
		return "", nil, errorPayloadSeal
	}
	for known, first := range payloadTypes {
		if value[0] == first {
			kind = known
		}
	}
	p := payloadReader{rest: value[1:]}
	switch kind {
	case "":
		return "", nil, errorPayloadFormat
	case "string":
		items = []string{p.text()}
	default:
		items = p.items(kind)
	}
	if p.broken || len(p.rest) > 0 || len(items) == 0 {
		return "", nil, errorPayloadFormat
	}
	return kind, items, ""
}

// A payloadReader is what is still unread of a payload.
type payloadReader struct {
	rest   []byte
	broken bool
}

func (p *payloadReader) items(kind string) []string {
	var items []string
	for n := p.length(); n > 0 && !p.broken; n-- {
		items = append(items, p.text())
		switch kind {
		case "hash":
			items = append(items, p.text())
		case "zset":
			if score := p.take(8); score != nil {
				number := math.Float64frombits(binary.LittleEndian.Uint64(score))
				items = append(items, strconv.FormatFloat(number, 'g', -1, 64))
			}
		}
	}
	return items
}

func (p *payloadReader) take(n int) []byte {
	if n > len(p.rest) {
		p.rest, p.broken = nil, true
		return nil
	}
	taken := p.rest[:n]
	p.rest = p.rest[n:]
	return taken
}

func (p *payloadReader) length() int {
	first := p.take(1)
	if first == nil {
		return 0
	}
	low := int(first[0] & (1<<6 - 1))
	switch {
	case first[0]>>6 == 0:
		return low
	case first[0]>>6 == 1:
		if next := p.take(1); next != nil {
			return low<<8 | int(next[0])
		}
	case first[0] == 2<<6:
		if next := p.take(4); next != nil {
			return int(binary.BigEndian.Uint32(next))
		}
	default:
		p.broken = true
	}
	return 0
}

func (p *payloadReader) text() string { return string(p.take(p.length())) }

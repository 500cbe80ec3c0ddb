package rdb

import (
	"encoding/binary"
	"math"
)

// writtenVersion is the RDB version that Dump writes, which is Redis 4.0's.
const writtenVersion = 8

// Dump encodes a value in the plainest of Redis's encodings, so that every server
// since 4.0 can RESTORE it. Equal values give equal payloads. Dump may sort v's items.
// It returns nil for an Unknown value.
func Dump(v Value) []byte {
	types := [...]payloadType{String: typeString, List: typeList, Set: typeSet, SortedSet: typeSortedSet, Hash: typeHash}
	if v.Kind == Unknown {
		return nil
	}
	v.sort()
	out := []byte{byte(types[v.Kind])}
	switch v.Kind {
	case String:
	case Hash:
		out = appendLength(out, len(v.Items)/2)
	default:
		out = appendLength(out, len(v.Items))
	}
	for i, item := range v.Items {
		out = append(appendLength(out, len(item)), item...)
		if v.Kind == SortedSet {
			out = binary.LittleEndian.AppendUint64(out, math.Float64bits(v.Scores[i]))
		}
	}
	out = binary.LittleEndian.AppendUint16(out, writtenVersion)
	return binary.LittleEndian.AppendUint64(out, checksum(out))
}

func appendLength(dst []byte, n int) []byte {
	switch {
	case n < 1<<6:
		return append(dst, byte(n))
	case n < 1<<14:
		return append(dst, 1<<6|byte(n>>8), byte(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, 2<<6), uint32(n))
}

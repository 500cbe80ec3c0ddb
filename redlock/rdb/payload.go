package rdb

import (
	"encoding/binary"
	"hash/crc64"
	"strconv"
)

// A payload is the unread rest of a value in RDB encoding. The first malformed piece
// makes it broken. From then on everything reads as zero.
type payload struct {
	rest   []byte
	broken bool
}

const (
	footerLength = 10 // 2 bytes RDB version, 8 bytes CRC
	// valkeyPayload is the first RDB version of Valkey's own numbering.
	valkeyPayload = 80
)

// checksumTable is for Redis's CRC-64 ("Jones"), bits reflected.
var checksumTable = crc64.MakeTable(0x95ac9329ac4bc9b5)

// checksum undoes the inversion at the start and end of Go's CRC-64, which Redis's
// does not have.
func checksum(signed []byte) uint64 {
	return ^crc64.Update(^uint64(0), checksumTable, signed)
}

// Open splits a DUMP payload into its value, type byte first, and the RDB version of
// the server that wrote it. It returns false if the payload is damaged.
func Open(dump []byte) (value []byte, version uint16, ok bool) {
	if len(dump) <= footerLength {
		return nil, 0, false
	}
	value, footer := dump[:len(dump)-footerLength], dump[len(dump)-footerLength:]
	sum := checksum(dump[:len(dump)-8])
	return value, binary.LittleEndian.Uint16(footer), sum == binary.LittleEndian.Uint64(footer[2:])
}

func (p *payload) fail() {
	p.rest, p.broken = nil, true
}

// take reads n bytes. They stay a slice of the payload.
func (p *payload) take(n uint64) []byte {
	if n > uint64(len(p.rest)) {
		p.fail()
		return nil
	}
	taken := p.rest[:n:n]
	p.rest = p.rest[n:]
	return taken
}

func (p *payload) byte() byte {
	if b := p.take(1); b != nil {
		return b[0]
	}
	return 0
}

// little reads an n byte little-endian number, n being at most 8.
func (p *payload) little(n uint64) uint64 {
	var wide [8]byte
	copy(wide[:], p.take(n))
	return binary.LittleEndian.Uint64(wide[:])
}

// big reads an n byte big-endian number, n being at most 8.
func (p *payload) big(n uint64) uint64 {
	var wide [8]byte
	if b := p.take(n); b != nil {
		copy(wide[8-n:], b)
	}
	return binary.BigEndian.Uint64(wide[:])
}

// integer reads an n byte little-endian signed number as the decimal text that
// Redis shows for it.
func (p *payload) integer(n uint64) []byte {
	unused := 64 - 8*n
	return decimal(int64(p.little(n)<<unused) >> unused)
}

// length reads a length. If encoded, n names a string encoding instead.
func (p *payload) length() (n uint64, encoded bool) {
	first := p.byte()
	switch first >> 6 {
	case 0:
		return uint64(first & 0x3f), false
	case 1:
		return uint64(first&0x3f)<<8 | uint64(p.byte()), false
	case 2:
		switch first {
		case 0x80:
			return p.big(4), false
		case 0x81:
			return p.big(8), false
		}
		p.fail()
		return 0, false
	}
	return uint64(first & 0x3f), true
}

// number reads a length that must not be an encoding.
func (p *payload) number() uint64 {
	n, encoded := p.length()
	if encoded {
		p.fail()
		return 0
	}
	return n
}

// count reads the number of items that follow. Each takes at least one byte.
func (p *payload) count() int {
	n := p.number()
	if n > uint64(len(p.rest)) {
		p.fail()
		return 0
	}
	return int(n)
}

// text reads a string that is stored plainly, as an integer or compressed.
func (p *payload) text() []byte {
	n, encoded := p.length()
	if !encoded {
		return p.take(n)
	}
	switch n {
	case 0:
		return p.integer(1)
	case 1:
		return p.integer(2)
	case 2:
		return p.integer(4)
	case 3:
		packed, size := p.number(), p.number()
		unpacked, ok := unpackLZF(p.take(packed), size)
		if !ok {
			p.fail()
		}
		return unpacked
	}
	p.fail()
	return nil
}

// texts reads n strings.
func (p *payload) texts(n int) [][]byte {
	list := make([][]byte, 0, n)
	for range n {
		list = append(list, p.text())
	}
	return list
}

// unpackLZF restores a string of the given size that LibLZF compressed.
func unpackLZF(packed []byte, size uint64) ([]byte, bool) {
	const best = 264 / 3 // three bytes stand for 264 at most
	if size > uint64(len(packed))*best {
		return nil, false
	}
	out := make([]byte, 0, size)
	in := payload{rest: packed}
	for len(in.rest) > 0 {
		control := uint64(in.byte())
		if control < 32 {
			out = append(out, in.take(control+1)...)
		} else {
			length := control >> 5
			if length == 7 {
				length += uint64(in.byte())
			}
			back := int((control&31)<<8|uint64(in.byte())) + 1
			if in.broken || back > len(out) {
				return nil, false
			}
			for range length + 2 { // it may read what it writes
				out = append(out, out[len(out)-back])
			}
		}
		if in.broken || uint64(len(out)) > size {
			return nil, false
		}
	}
	return out, uint64(len(out)) == size
}

func decimal(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

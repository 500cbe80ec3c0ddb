package rdb

// These encodings keep a small collection in one string. Each reader returns the
// elements in stored order, and marks p as broken if the string is malformed. Elements
// are slices of the string or decimal texts.

// listpack reads Redis 7's compact encoding. Its count field says nothing above 65,534
// elements, so the reader goes by the end mark.
func (p *payload) listpack() [][]byte {
	in := payload{rest: p.text()}
	in.take(4) // size in bytes
	list := make([][]byte, 0, min(in.little(2), uint64(len(in.rest))))
	for {
		before := len(in.rest)
		head := in.byte()
		if head == 0xff || in.broken {
			break
		}
		var element []byte
		switch {
		case head < 0x80:
			element = decimal(int64(head))
		case head < 0xc0:
			element = in.take(uint64(head & 0x3f))
		case head < 0xe0:
			const bits = 13
			n := int64(head&0x1f)<<8 | int64(in.byte())
			element = decimal(n << (64 - bits) >> (64 - bits))
		case head < 0xf0:
			element = in.take(uint64(head&0x0f)<<8 | uint64(in.byte()))
		case head == 0xf0:
			element = in.take(in.little(4))
		case head <= 0xf3:
			element = in.integer(uint64(head-0xf1) + 2)
		case head == 0xf4:
			element = in.integer(8)
		default:
			in.fail()
		}
		in.skipBackLength(before - len(in.rest))
		list = append(list, element)
	}
	p.close(in)
	return list
}

// skipBackLength skips the length that follows an element of n bytes. It serves
// readers that go backwards: 7 bits a byte, the highest first. If all bits are ones,
// Redis writes one byte more than needed, and Valkey 9 does not.
func (p *payload) skipBackLength(n int) {
	more := uint64(0)
	for n >>= 7; n > 0; n >>= 7 {
		more++
	}
	if p.byte() == 0 {
		more++
	}
	p.take(more)
}

// ziplist reads the compact encoding of Redis up to 6.2.
func (p *payload) ziplist() [][]byte {
	in := payload{rest: p.text()}
	in.take(8) // size in bytes, offset of the last element
	list := make([][]byte, 0, min(in.little(2), uint64(len(in.rest))))
	for {
		previous := in.byte()
		if previous == 0xff || in.broken {
			break
		}
		if previous == 0xfe {
			in.take(4)
		}
		head := in.byte()
		var element []byte
		switch {
		case head < 0x40:
			element = in.take(uint64(head))
		case head < 0x80:
			element = in.take(uint64(head&0x3f)<<8 | uint64(in.byte()))
		case head == 0x80:
			element = in.take(in.big(4))
		case head == 0xc0:
			element = in.integer(2)
		case head == 0xd0:
			element = in.integer(4)
		case head == 0xe0:
			element = in.integer(8)
		case head == 0xf0:
			element = in.integer(3)
		case head == 0xfe:
			element = in.integer(1)
		case head > 0xf0 && head < 0xfe:
			element = decimal(int64(head) - 0xf1)
		default:
			in.fail()
		}
		list = append(list, element)
	}
	p.close(in)
	return list
}

// intset reads the encoding of a set of integers.
func (p *payload) intset() [][]byte {
	in := payload{rest: p.text()}
	width, n := in.little(4), in.little(4)
	if width != 2 && width != 4 && width != 8 || n > uint64(len(in.rest)) {
		p.fail()
		return nil
	}
	list := make([][]byte, 0, n)
	for range n {
		list = append(list, in.integer(width))
	}
	p.close(in)
	return list
}

// close marks p as broken if the string in, read inside it, is not used up.
func (p *payload) close(in payload) {
	if in.broken || len(in.rest) > 0 {
		p.fail()
	}
}

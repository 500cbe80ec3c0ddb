package rdb

// payloadType is the first byte of a DUMP payload: type and encoding in one.
type payloadType byte

const (
	typeString               payloadType = 0
	typeList                 payloadType = 1
	typeSet                  payloadType = 2
	typeSortedSetText        payloadType = 3 // scores as text
	typeHash                 payloadType = 4
	typeSortedSet            payloadType = 5
	typeListZiplist          payloadType = 10
	typeSetIntset            payloadType = 11
	typeSortedSetZiplist     payloadType = 12
	typeHashZiplist          payloadType = 13
	typeListQuicklist        payloadType = 14 // of ziplists
	typeHashListpack         payloadType = 16
	typeSortedSetListpack    payloadType = 17
	typeListQuicklist2       payloadType = 18 // of listpacks and single elements
	typeSetListpack          payloadType = 20
	typeHashExpiringValkey   payloadType = 22 // fields with a TTL, Valkey 9
	typeHashExpiring         payloadType = 24 // fields with a TTL, Redis 7.4
	typeHashListpackExpiring payloadType = 25
)

// Read reads what a DUMP payload holds. False means that the payload is
// of a kind not known here (a stream, a module's, a newer server's) or damaged.
func Read(dump []byte) (Value, bool) {
	value, version, ok := Open(dump)
	if !ok {
		return Value{}, false
	}
	p := payload{rest: value[1:]}
	c, ok := p.content(payloadType(value[0]), version)
	if !ok || p.broken || len(p.rest) > 0 {
		return Value{}, false
	}
	c.sort()
	return c, true
}

func (p *payload) content(of payloadType, version uint16) (Value, bool) {
	switch of {
	case typeString:
		return Value{String, p.texts(1)}, true
	case typeList:
		return Value{List, p.texts(p.count())}, true
	case typeListZiplist:
		return Value{List, p.ziplist()}, true
	case typeListQuicklist, typeListQuicklist2:
		return Value{List, p.quicklist(of)}, true
	case typeSet:
		return Value{Set, p.texts(p.count())}, true
	case typeSetIntset:
		return Value{Set, p.intset()}, true
	case typeSetListpack:
		return Value{Set, p.listpack()}, true
	case typeSortedSetText, typeSortedSet:
		return Value{SortedSet, p.sortedSet(of)}, true
	case typeSortedSetZiplist:
		return Value{SortedSet, p.firstOfEach(2, 1, p.ziplist())}, true
	case typeSortedSetListpack:
		return Value{SortedSet, p.firstOfEach(2, 1, p.listpack())}, true
	case typeHash, typeHashExpiring:
		return Value{Hash, p.hash(of)}, true
	case typeHashExpiringValkey:
		return Value{Hash, p.hash(of)}, version >= valkeyPayload
	case typeHashZiplist:
		return Value{Hash, p.firstOfEach(2, 2, p.ziplist())}, true
	case typeHashListpack:
		return Value{Hash, p.firstOfEach(2, 2, p.listpack())}, true
	case typeHashListpackExpiring:
		p.take(8) // when the first field expires
		return Value{Hash, p.firstOfEach(3, 2, p.listpack())}, true
	}
	return Value{}, false
}

// firstOfEach keeps the first elements of every group, which must be whole.
func (p *payload) firstOfEach(size, kept int, list [][]byte) [][]byte {
	if len(list)%size != 0 {
		p.fail()
		return nil
	}
	out := list[:0]
	for i := 0; i < len(list); i += size {
		out = append(out, list[i:i+kept]...)
	}
	return out
}

func (p *payload) quicklist(of payloadType) [][]byte {
	const single, packed = 1, 2
	var list [][]byte
	for range p.count() {
		switch {
		case of == typeListQuicklist:
			list = append(list, p.ziplist()...)
		default:
			switch p.number() {
			case single:
				list = append(list, p.text())
			case packed:
				list = append(list, p.listpack()...)
			default:
				p.fail()
			}
		}
	}
	return list
}

func (p *payload) sortedSet(of payloadType) [][]byte {
	n := p.count()
	members := make([][]byte, 0, n)
	for range n {
		members = append(members, p.text())
		if of == typeSortedSet {
			p.take(8)
		} else if size := p.byte(); size < 0xfd { // above: infinities, not a number
			p.take(uint64(size))
		}
	}
	return members
}

func (p *payload) hash(of payloadType) [][]byte {
	if of == typeHashExpiring {
		p.take(8) // when the first field expires
	}
	n := p.count()
	fields := make([][]byte, 0, 2*n)
	for range n {
		if of == typeHashExpiring {
			p.number()
		}
		fields = append(fields, p.text(), p.text())
		if of == typeHashExpiringValkey {
			p.take(8)
		}
	}
	return fields
}

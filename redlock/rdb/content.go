package rdb

import (
	"math"
	"slices"
	"strconv"
)

// payloadType is the first byte of a DUMP payload: type and encoding in one. Those that
// only servers before Redis 5 write are missing: they have no CLIENT ID, so none of them
// can be a master.
type payloadType byte

const (
	typeString               payloadType = 0
	typeList                 payloadType = 1
	typeSet                  payloadType = 2
	typeHash                 payloadType = 4
	typeSortedSet            payloadType = 5
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

// value reads the content of a payload of that type. It is Unknown for a type not
// listed here: streams, types of modules and types of newer servers.
func (p *payload) value(of payloadType, version uint16) Value {
	switch of {
	case typeString:
		return Value{Kind: String, Items: p.texts(1)}
	case typeList:
		return Value{Kind: List, Items: p.texts(p.count())}
	case typeListQuicklist, typeListQuicklist2:
		return Value{Kind: List, Items: p.quicklist(of)}
	case typeSet:
		return Value{Kind: Set, Items: p.texts(p.count())}
	case typeSetIntset:
		return Value{Kind: Set, Items: p.intset()}
	case typeSetListpack:
		return Value{Kind: Set, Items: p.listpack()}
	case typeSortedSet:
		return p.sortedSet()
	case typeSortedSetZiplist:
		return p.scored(p.ziplist())
	case typeSortedSetListpack:
		return p.scored(p.listpack())
	case typeHash, typeHashExpiring:
		return Value{Kind: Hash, Items: p.hash(of)}
	case typeHashExpiringValkey:
		if version >= valkeyPayload {
			return Value{Kind: Hash, Items: p.hash(of)}
		}
	case typeHashZiplist:
		return Value{Kind: Hash, Items: p.pairs(2, p.ziplist())}
	case typeHashListpack:
		return Value{Kind: Hash, Items: p.pairs(2, p.listpack())}
	case typeHashListpackExpiring:
		p.take(8) // when the first field expires
		return Value{Kind: Hash, Items: p.pairs(3, p.listpack())}
	}
	return Value{}
}

// pairs keeps the first two elements of every group of that size. An incomplete group
// marks p as broken.
func (p *payload) pairs(size int, list [][]byte) [][]byte {
	if len(list)%size != 0 {
		p.fail()
		return nil
	}
	out := list[:0]
	for i := 0; i < len(list); i += size {
		out = append(out, list[i:i+2]...)
	}
	return out
}

// scored separates members from their scores, which follow them as text.
func (p *payload) scored(list [][]byte) Value {
	v := Value{Kind: SortedSet, Items: list[:0]}
	for pair := range slices.Chunk(p.pairs(2, list), 2) {
		v.Items = append(v.Items, pair[0])
		v.Scores = append(v.Scores, p.score(pair[1]))
	}
	return v
}

func (p *payload) score(text []byte) float64 {
	score, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		p.fail()
	}
	return score
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

func (p *payload) sortedSet() Value {
	n := p.count()
	v := Value{Kind: SortedSet, Items: make([][]byte, 0, n), Scores: make([]float64, 0, n)}
	for range n {
		v.Items = append(v.Items, p.text())
		v.Scores = append(v.Scores, math.Float64frombits(p.little(8)))
	}
	return v
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

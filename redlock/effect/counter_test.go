package effect

import (
	"encoding/binary"
	"hash/crc64"
	"testing"

	"redlock-proxy/redlock/rdb"
)

// withFieldTTLs is the payload of a hash of two short fields, of which one has a TTL, as Redis 7.4 writes it.
func withFieldTTLs(f, g string) []byte {
	value := "\x18\x01\x02\x03\x04\x05\x00\x00\x00\x02\x00\x01f" + string(rune(len(f))) + f + "\x01\x01g" + string(rune(len(g))) + g
	out := binary.LittleEndian.AppendUint16([]byte(value), 12)
	sum := ^crc64.Update(^uint64(0), crc64.MakeTable(0x95ac9329ac4bc9b5), out)
	return binary.LittleEndian.AppendUint64(out, sum)
}

// A copy that is made of two can be restored by each server that can be a master, and loses no TTL.
func TestCopiesThatAreMadeOfTwo(t *testing.T) {
	plain := func(f, g string) Image {
		return Image{Dump: rdb.Dump(rdb.Value{Kind: rdb.Hash, Items: args("f " + f + " g " + g)}), PTTL: 5}
	}
	expiring := func(f, g string) Image { return Image{Dump: withFieldTTLs(f, g), PTTL: 5} }
	united, all, ok := Unite(2, plain("1", "4"), plain("2", "3"))
	if !ok || !all || !SameContent(united, plain("2", "4")) || united.PTTL != 5 {
		t.Errorf("mixed copies become %v, %v", rdb.Read(united.Dump), ok)
	}
	if _, version, _ := rdb.Open(united.Dump); version > 8 { // Redis 5 writes 9
		t.Errorf("the payload is of version %d", version)
	}
	for _, pair := range [][2]Image{{expiring("1", "4"), plain("2", "3")}, {plain("1", "4"), expiring("2", "3")}} {
		if _, _, ok := Unite(2, pair[0], pair[1]); ok {
			t.Errorf("the TTLs of fields are lost: %v", pair)
		}
	}
	if ahead, all, ok := Unite(2, expiring("1", "3"), expiring("2", "3")); !ok || !all || !SameContent(ahead, plain("2", "3")) || !rdb.HasFieldTTLs(ahead.Dump) {
		t.Errorf("a copy that is ahead is not taken as it is: %v", ok)
	}
}

package rdb

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"redlock-proxy/redlock/livetest"
)

// Payloads as other servers write them. Their bytes are given to a real
// server's RESTORE where it knows them, so the encoders here cannot agree with
// the reader on something that is wrong.

// sealed makes a DUMP payload of a type byte and a value.
func sealed(version uint16, of payloadType, value ...[]byte) []byte {
	out := append([]byte{byte(of)}, bytes.Join(value, nil)...)
	out = binary.LittleEndian.AppendUint16(out, version)
	return binary.LittleEndian.AppendUint64(out, checksum(out))
}

func rdbLength(n int) []byte { return appendLength(nil, n) }

func rdbText(s string) []byte { return append(rdbLength(len(s)), s...) }

func rdbTexts(list ...string) []byte {
	out := rdbLength(len(list))
	for _, s := range list {
		out = append(out, rdbText(s)...)
	}
	return out
}

func rdbZiplist(list ...string) []byte {
	var entries []byte
	previous, last := 0, 0
	for _, s := range list {
		last = len(entries)
		if previous < 254 {
			entries = append(entries, byte(previous))
		} else {
			entries = binary.LittleEndian.AppendUint32(append(entries, 0xfe), uint32(previous))
		}
		n, err := strconv.ParseInt(s, 10, 64)
		switch {
		case err != nil || strconv.FormatInt(n, 10) != s:
			switch {
			case len(s) < 1<<6:
				entries = append(entries, byte(len(s)))
			case len(s) < 1<<14:
				entries = append(entries, 0x40|byte(len(s)>>8), byte(len(s)))
			default:
				entries = binary.BigEndian.AppendUint32(append(entries, 0x80), uint32(len(s)))
			}
			entries = append(entries, s...)
		case n >= 0 && n <= 12:
			entries = append(entries, 0xf1+byte(n))
		case n >= math.MinInt8 && n <= math.MaxInt8:
			entries = append(entries, 0xfe, byte(n))
		case n >= math.MinInt16 && n <= math.MaxInt16:
			entries = binary.LittleEndian.AppendUint16(append(entries, 0xc0), uint16(n))
		case n >= -1<<23 && n < 1<<23:
			entries = append(entries, 0xf0, byte(n), byte(n>>8), byte(n>>16))
		case n >= math.MinInt32 && n <= math.MaxInt32:
			entries = binary.LittleEndian.AppendUint32(append(entries, 0xd0), uint32(n))
		default:
			entries = binary.LittleEndian.AppendUint64(append(entries, 0xe0), uint64(n))
		}
		previous = len(entries) - last
	}
	var blob []byte
	blob = binary.LittleEndian.AppendUint32(blob, uint32(10+len(entries)+1))
	blob = binary.LittleEndian.AppendUint32(blob, uint32(10+last))
	blob = binary.LittleEndian.AppendUint16(blob, uint16(len(list)))
	return rdbText(string(append(append(blob, entries...), 0xff)))
}

// rdbListpack writes strings only, which every reader has to take for what
// they spell.
func rdbListpack(list ...string) []byte {
	blob := make([]byte, 6)
	for _, s := range list {
		blob = append(append(blob, 0x80|byte(len(s))), s...)
		blob = append(blob, byte(1+len(s)))
	}
	blob = append(blob, 0xff)
	binary.LittleEndian.PutUint32(blob, uint32(len(blob)))
	binary.LittleEndian.PutUint16(blob[4:], uint16(len(list)))
	return rdbText(string(blob))
}

// elementsOfEverySize are strings at the limits of each encoding.
func elementsOfEverySize() []string {
	list := []string{"", "a", "007", "-0", "+1", " 1", "9223372036854775808"}
	for _, bits := range []uint{0, 3, 6, 7, 8, 12, 13, 15, 16, 23, 24, 31, 32, 62} {
		for _, n := range []int64{1<<bits - 1, 1 << bits, 1<<bits + 1} {
			list = append(list, strconv.FormatInt(n, 10), strconv.FormatInt(-n, 10))
		}
	}
	list = append(list, strconv.Itoa(math.MaxInt64), strconv.Itoa(math.MinInt64))
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{20, 63, 64, 124, 125, 126, 127, 128, 253, 254, 255, 4095, 4096, 16376, 16377, 16378, 16379, 16384, 70000} {
		noise := make([]byte, n)
		for i := range noise {
			noise[i] = byte(random.Uint32())
		}
		list = append(list, string(noise), strings.Repeat("squeeze ", n/8), strings.Repeat("z", n))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func TestPayloadsOfOlderServers(t *testing.T) {
	m := livetest.Start(t)
	var list []string
	for _, s := range elementsOfEverySize() {
		if len(s) < 1<<14 {
			list = append(list, s)
		}
	}
	list = list[:len(list)/2*2]
	var quicklist []byte
	pages := 0
	for i := 0; i < len(list); i += 10 {
		quicklist = append(quicklist, rdbZiplist(list[i:min(i+10, len(list))]...)...)
		pages++
	}
	members := make([]string, 0, len(list))
	for i, s := range list {
		members = append(members, s, strconv.Itoa(i))
	}
	hash := append(rdbLength(len(list)/2), rdbTexts(list...)[len(rdbLength(len(list))):]...)
	for name, payload := range map[string][]byte{
		"list":                  sealed(6, typeList, rdbTexts(list...)),
		"list, quicklist":       sealed(7, typeListQuicklist, rdbLength(pages), quicklist),
		"sorted set, ziplist":   sealed(6, typeSortedSetZiplist, rdbZiplist(members...)),
		"hash":                  sealed(6, typeHash, hash),
		"hash, ziplist":         sealed(6, typeHashZiplist, rdbZiplist(list...)),
		"hash, listpack":        sealed(10, typeHashListpack, rdbListpack("f", "12", "g", "")),
		"set":                   sealed(6, typeSet, rdbTexts(list...)),
		"set, intset of 2":      sealed(6, typeSetIntset, rdbText("\x02\x00\x00\x00\x03\x00\x00\x00\xff\xff\x00\x00\x01\x01")),
		"set, intset of 4":      sealed(6, typeSetIntset, rdbText("\x04\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x80\xff\xff\xff\x7f")),
		"set, intset of 8":      sealed(6, typeSetIntset, rdbText("\x08\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80")),
		"string":                sealed(6, typeString, rdbText("v")),
		"string, long length":   sealed(6, typeString, []byte("\x80\x00\x00\x00\x01v")),
		"string, longer length": sealed(9, typeString, []byte("\x81\x00\x00\x00\x00\x00\x00\x00\x01v")),
		"string, 1 byte":        sealed(6, typeString, []byte("\xc0\xff")),
		"string, 2 bytes":       sealed(6, typeString, []byte("\xc1\x00\x80")),
		"string, 4 bytes":       sealed(6, typeString, []byte("\xc2\x00\x00\x00\x80")),
	} {
		t.Run(name, func(t *testing.T) {
			m.Must("RESTORE", "k", "0", string(payload), "REPLACE")
			if Read(payload).Kind == Unknown {
				t.Fatal("not read")
			}
			if !Same(payload, m.Dump("k")) {
				t.Error("it is not the same as the server makes of it")
			}
		})
	}
}

// Fields' TTLs do not count, and neither does the way they are stored.
func TestHashesWithFieldTTLs(t *testing.T) {
	plain := sealed(10, typeHash, rdbLength(2), rdbText("f"), rdbText("1"), rdbText("g"), rdbText("2"))
	soon := []byte("\x01\x02\x03\x04\x05\x00\x00\x00")
	never := []byte("\xff\xff\xff\xff\xff\xff\xff\xff")
	for name, payload := range map[string][]byte{
		"Redis":           sealed(12, typeHashExpiring, soon, rdbLength(2), rdbLength(0), rdbText("g"), rdbText("2"), rdbLength(1), rdbText("f"), rdbText("1")),
		"Redis, listpack": sealed(12, typeHashListpackExpiring, soon, rdbListpack("f", "1", "77", "g", "2", "0")),
		"Valkey":          sealed(80, typeHashExpiringValkey, rdbLength(2), rdbText("f"), rdbText("1"), never, rdbText("g"), rdbText("2"), soon),
	} {
		if !Same(payload, plain) {
			t.Errorf("%s: not the same as without TTLs", name)
		}
		if !HasFieldTTLs(payload) {
			t.Errorf("%s: it is not told from a hash without TTLs", name)
		}
	}
	if HasFieldTTLs(plain) || HasFieldTTLs(nil) {
		t.Error("a hash without TTLs has some")
	}
	if Read(sealed(12, typeHashExpiringValkey, rdbLength(1), rdbText("f"), rdbText("1"), never)).Kind != Unknown {
		t.Error("Valkey's type is read in a payload of Redis, whose unreleased type of that number is another")
	}
}

func TestListpackOfManyElements(t *testing.T) {
	const n = 70000 // more than its count field can say
	list := make([]string, n)
	for i := range list {
		list[i] = strconv.Itoa(i)
	}
	payload := sealed(10, typeListQuicklist2, rdbLength(1), rdbLength(2), rdbListpack(list...))
	if v := Read(payload); v.Kind != List || len(v.Items) != n {
		t.Errorf("%d elements read of a %v", len(v.Items), v.Kind)
	}
}

// An element of 2^14-1 bytes is followed by its length in three bytes on Redis
// and in two on Valkey 9.
func TestListpackLengthsAtTheirLimit(t *testing.T) {
	element := "\xf0" + string(binary.LittleEndian.AppendUint32(nil, 16378)) + strings.Repeat("e", 16378)
	list := func(back string) []byte {
		return sealed(10, typeSetListpack, rdbText("????\x01\x00"+element+back+"\xff"))
	}
	for _, back := range []string{"\x00\xff\xff", "\x7f\xff"} {
		if v := Read(list(back)); v.Kind != Set || len(v.Items) != 1 || len(v.Items[0]) != 16378 {
			t.Errorf("length %q: %d elements of a %v", back, len(v.Items), v.Kind)
		}
	}
	if !Same(list("\x00\xff\xff"), list("\x7f\xff")) {
		t.Error("not the same")
	}
}

func TestDamagedPayloads(t *testing.T) {
	for name, payload := range map[string][]byte{
		"string longer than the payload":  sealed(10, typeString, []byte("\x81\x7f\xff\xff\xff\xff\xff\xff\xff")),
		"compressed beyond what LZF can":  sealed(10, typeString, []byte("\xc3\x02\x81\x00\x00\x40\x00\x00\x00\x00\x00\x00a")),
		"compressed, refers to nothing":   sealed(10, typeString, []byte("\xc3\x03\x0a\x20\x05\x05")),
		"compressed, too short":           sealed(10, typeString, []byte("\xc3\x02\x03\x00a")),
		"compressed, too long":            sealed(10, typeString, []byte("\xc3\x03\x01\x01ab")),
		"compressed, cut":                 sealed(10, typeString, []byte("\xc3\x01\x05\x20")),
		"string with something behind":    sealed(10, typeString, []byte("\x01vx")),
		"string in unknown encoding":      sealed(10, typeString, []byte("\xc4")),
		"reserved length":                 sealed(10, typeString, []byte("\x82\x00\x00\x00\x01v")),
		"set of more than the payload":    sealed(10, typeSet, []byte("\x81\x7f\xff\xff\xff\xff\xff\xff\xff")),
		"set counted by an encoding":      sealed(10, typeSet, []byte("\xc1\x01v")),
		"hash listpack of odd length":     sealed(10, typeHashListpack, rdbListpack("f")),
		"listpack without end":            sealed(10, typeSetListpack, rdbText("\x07\x00\x00\x00\x01\x00\x81v\x02")),
		"listpack with bytes behind":      sealed(10, typeSetListpack, rdbText("\x07\x00\x00\x00\x00\x00\xffv")),
		"listpack of an unknown encoding": sealed(10, typeSetListpack, rdbText("\x07\x00\x00\x00\x01\x00\xf5\x01\xff")),
		"ziplist of an unknown encoding":  sealed(10, typeHashZiplist, rdbText("\x0d\x00\x00\x00\x0a\x00\x00\x00\x01\x00\x00\xf0\xff")),
		"ziplist cut":                     sealed(10, typeHashZiplist, rdbText("\x0d\x00\x00\x00\x0a")),
		"intset of odd width":             sealed(10, typeSetIntset, rdbText("\x03\x00\x00\x00\x01\x00\x00\x00abc")),
		"intset of too many":              sealed(10, typeSetIntset, rdbText("\x02\x00\x00\x00\xff\xff\xff\xff")),
		"quicklist node of unknown kind":  sealed(10, typeListQuicklist2, []byte("\x01\x03\x01v")),
		"module":                          sealed(10, 7, []byte("\x81\x00\x00\x00\x00\x00\x00\x00\x00\x00")),
		"type of the future":              sealed(99, 77, rdbText("v")),
	} {
		t.Run(name, func(t *testing.T) {
			if v := Read(payload); v.Kind != Unknown {
				t.Errorf("read as a %v of %q", v.Kind, v.Items)
			}
			newer := bytes.Clone(payload)
			newer = sealed(11, payloadType(newer[0]), newer[1:len(newer)-footerLength])
			if !Same(payload, newer) {
				t.Error("another version of the server makes it another")
			}
			if Same(payload, payload[:len(payload)-1]) {
				t.Error("other bytes are the same")
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(nil))
	for _, value := range [][]byte{
		sealed(10, typeHashZiplist, rdbZiplist("f", "1", "g", "-70000")),
		sealed(10, typeSetListpack, rdbListpack("a", "b")),
		sealed(10, typeSortedSetListpack, rdbListpack("a", "-1.5")),
		sealed(10, typeString, []byte("\xc3\x04\x0a\x00z\x80\x00")),
		sealed(80, typeHashExpiringValkey, rdbLength(1), rdbText("f"), rdbText("1"), []byte("12345678")),
		sealed(10, 15, rdbLength(1), rdbText("0123456789abcdef"),
			rdbListpack("1", "0", "1", "f", "0", "2", "0", "0", "v", "4"), []byte("\x01\x00\x00\x00")),
	} {
		f.Add(value[:len(value)-footerLength])
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		Read(value)
		StringValue(value)
		if len(value) == 0 {
			return
		}
		payload := sealed(80, payloadType(value[0]), value[1:])
		if !Same(payload, sealed(81, payloadType(value[0]), value[1:])) {
			t.Error("the version makes it another")
		}
		StringValue(payload)
		v := Read(payload)
		if v.Kind == SortedSet && len(v.Scores) != len(v.Items) {
			t.Errorf("%d members have %d scores", len(v.Items), len(v.Scores))
		}
		if again := Dump(v); v.Kind != Unknown && !Same(payload, again) {
			t.Errorf("%q becomes %q", payload, again)
		}
	})
}

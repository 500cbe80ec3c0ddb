package rdb

// mostCompared is the largest number of items that a master must compare.
const mostCompared = 1 << 14

// Words is a collection as a master's script compares it: its type and its items, or else
// "dump" and its payload.
func Words(dump []byte) [][]byte {
	switch v := Read(dump); v.Kind {
	case List, Set, SortedSet, Hash:
		if len(v.Items) <= mostCompared {
			return append([][]byte{[]byte(v.Kind.String())}, v.Items...)
		}
	}
	return [][]byte{[]byte("dump"), dump}
}

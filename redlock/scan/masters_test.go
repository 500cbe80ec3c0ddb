package scan

import (
	"slices"
	"testing"

	"redlock-proxy/redlock/resp"
)

// A walk scans database 0, and those with more keys than the marker. In a database that can hold no
// locks no master votes, so a walk would never be complete. It knows the server by its
// run id.
func TestParseServer(t *testing.T) {
	for text, want := range map[string][]int{
		"# Keyspace\r\n": {0},
		"db1023:keys=2,expires=0\r\ndb1024:keys=2,expires=0":                                                                             {0, 1023},
		"# Keyspace\r\ndb0:keys=1,expires=0,avg_ttl=0\r\ndb3:keys=2,expires=1\r\ndb4:keys=1,expires=0\r\ndb15:keys=100000,expires=3\r\n": {0, 3, 15},
		"db1:keys=x\r\ndbx:keys=3\r\ndb-1:keys=3\r\ndb0:keys=9":                                                                          {0},
	} {
		if run, dbs, err := parseServer(resp.AppendBulk(nil, "# Server\r\nrun_id:abc\r\n"+text)); err != nil || run != "abc" || !slices.Equal(dbs, want) {
			t.Errorf("%q: %s %v %v, not %v", text, run, dbs, err, want)
		}
	}
	for _, wrong := range []string{"+run_id:abc\r\n", "$7\r\nrun:abc\r\n"} {
		if run, dbs, err := parseServer([]byte(wrong)); err == nil {
			t.Errorf("%q: %s %v", wrong, run, dbs)
		}
	}
}

func TestParsePage(t *testing.T) {
	next, keys, err := parsePage([]byte("*2\r\n$2\r\n17\r\n*2\r\n$1\r\na\r\n$3\r\n\x00\r\n\r\n"))
	if err != nil || string(next) != "17" || len(keys) != 2 || string(keys[1]) != "\x00\r\n" {
		t.Errorf("%q %q %v", next, keys, err)
	}
	for _, wrong := range []string{"-NOPERM no\r\n", "*1\r\n$1\r\n0\r\n", "*2\r\n:0\r\n*0\r\n", "*2\r\n$1\r\n0\r\n:1\r\n", "+OK\r\n"} {
		if next, keys, err := parsePage([]byte(wrong)); err == nil {
			t.Errorf("%q: %q %q", wrong, next, keys)
		}
	}
}

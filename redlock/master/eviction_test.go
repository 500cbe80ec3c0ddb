package master

import "testing"

func TestEvicts(t *testing.T) {
	for info, want := range map[string]string{
		"maxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n":    "",
		"maxmemory:100\r\nmaxmemory_policy:noeviction\r\n":   "",
		"maxmemory:100\r\nmaxmemory_policy:volatile-ttl\r\n": "volatile-ttl",
		"maxmemory:100\r\nmaxmemory_policy:allkeys-lru\r\n":  "allkeys-lru",
		"used_memory:1\r\n": "",
	} {
		if got := evicts([]byte(info)); got != want {
			t.Errorf("%q evicts by %q, want %q", info, got, want)
		}
	}
}

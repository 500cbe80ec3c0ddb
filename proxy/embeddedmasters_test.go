package proxy

import (
	"reflect"
	"strings"
	"testing"

	"redlock-proxy/proxy/config"

	"github.com/redis/go-redis/v9"
)

// The effects of a run that was not won are undone exactly on embedded masters.
func TestEmbeddedMastersUndo(t *testing.T) {
	cfg := config.Demo()
	cfg.MasterTimeout = patience
	p, _ := startWholeProxy(t, cfg)
	waitReady(t, p)
	client := redis.NewClient(&redis.Options{Addr: p.listener.Addr().String(), MaxRetries: -1})
	defer client.Close()
	if err := client.HSet(t.Context(), "lock:h", "a", "1", "b", "2").Err(); err != nil {
		t.Fatal(err)
	}
	const differs = "redis.call('HSET', KEYS[1], 'at', redis.call('TIME')[2]) redis.call('PEXPIRE', KEYS[1], 60000) return 1"
	for _, key := range []string{"lock:h", "lock:absent"} {
		if err := client.Eval(t.Context(), differs, []string{key}).Err(); err == nil {
			t.Fatalf("%s: a run that differs on every master is won", key)
		}
	}
	want := map[string]string{"a": "1", "b": "2"}
	for _, master := range p.embedded {
		if !strings.HasPrefix(master.Name(), "embedded-") {
			continue
		}
		direct := redis.NewClient(&redis.Options{Addr: master.Address(), MaxRetries: -1})
		defer direct.Close()
		eventually(t, master.Name()+" is as it was", func() bool { // what is put back is queued before the client hears
			got := direct.HGetAll(t.Context(), "lock:h").Val()
			return reflect.DeepEqual(got, want) && direct.PTTL(t.Context(), "lock:h").Val() == -1 && direct.Exists(t.Context(), "lock:absent").Val() == 0
		})
	}
}

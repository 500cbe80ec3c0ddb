package inspect

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/route"
)

// The rights that the proxy's user lacks on a master are found command by command, and
// asking changes nothing there.
func TestMissingRights(t *testing.T) {
	server := proxytest.StartRedis(t)
	renamed := proxytest.StartRedis(t, "--rename-command", "DUMP", "")
	admin := redis.NewClient(serverAt(server).Options())
	defer admin.Close()
	rules := route.Rules{{Match: "lock:*", DB: route.AnyDB}, {Match: "job:*", DB: route.AnyDB}}
	for i, row := range []struct {
		rules string
		want  []string
	}{
		{"~* &* +@all", nil},
		{"~lock:* ~job:* ~redlock-proxy:* &* +@read +@write +@transaction +@scripting +@connection +@pubsub -@dangerous +time +info +role +restore +sort +client|kill", nil}, // the README's
		{"~* &* +@all -eval -client|kill -script|load", []string{"eval", "script|load", "client|kill"}},
		{"~* &* +@all -@dangerous", []string{"info", "client|kill", "restore"}},
		{"~* &* +@all -multi", []string{"multi"}},
		{"~* &* +@all -scan -memory -type", []string{"scan", "memory|usage", "type"}},
		{"~* &* +@all -exec", []string{"exec"}},
		{"~* &* +@all -discard -get", []string{"get"}},
		{"~* &* +@all -discard", nil},
		{"~* resetchannels +@all", []string{"subscribe", "psubscribe", "publish"}},
		{"~redlock-proxy:* ~lock:* &* +@all", []string{"keys such as job:demo"}},
		{"~lock:* ~job:* &* +@all -eval", []string{"keys such as redlock-proxy:master", "eval"}},      // not each command on our own keys
		{"~lock:* ~job:* %W~redlock-proxy:* &* +@all", []string{"keys such as redlock-proxy:master"}}, // which it may not read,
	} {
		user := fmt.Sprint("user", i)
		if err := admin.Do(t.Context(), append([]any{"ACL", "SETUSER", user, "on", ">pw"}, fields(row.rules)...)...).Err(); err != nil {
			t.Fatal(err)
		}
		entry := serverAt(server)
		entry.Username, entry.Password = user, "pw"
		client := redis.NewClient(entry.Options())
		missing, err := askRights(t.Context(), client, rules)
		client.Close()
		if got := namesOf(missing); err != nil || !slices.Equal(got, row.want) {
			t.Errorf("%s: missing %q, %v", row.rules, got, err)
		}
	}
	if keys := admin.Keys(t.Context(), "*").Val(); len(keys) > 0 {
		t.Errorf("asking left the keys %q", keys)
	}
	client := redis.NewClient(serverAt(renamed).Options())
	defer client.Close()
	if missing, err := askRights(t.Context(), client, nil); err != nil || !slices.Equal(namesOf(missing), []string{"dump"}) {
		t.Errorf("with DUMP renamed: %q, %v", namesOf(missing), err)
	}
}

func fields(text string) []any {
	var list []any
	for field := range strings.FieldsSeq(text) {
		list = append(list, field)
	}
	return list
}

func namesOf(missing []missingRight) []string {
	var names []string
	for _, right := range missing {
		names = append(names, right.name)
	}
	return names
}

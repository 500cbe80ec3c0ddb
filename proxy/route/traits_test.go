package route

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestCommandTraits lists the commands of each trait. The table must know them all.
func TestCommandTraits(t *testing.T) {
	table := Builtin()
	all := map[string]*Spec{}
	for spec := range table.All() {
		all[spec.Name] = spec
	}
	var ofClient []string
	for name := range all {
		if strings.HasPrefix(name, "client|") {
			ofClient = append(ofClient, name)
		}
	}
	const subscriptions = "subscribe psubscribe ssubscribe unsubscribe punsubscribe sunsubscribe"
	for _, row := range []struct {
		trait    Traits
		commands string
	}{
		{Sort, "sort"},
		{Migrate, "migrate"},
		{Conditions, "exec"},
		{Script, "eval evalsha eval_ro evalsha_ro fcall fcall_ro"},
		{Splits, "del unlink exists touch mget"},
		{Elsewhere, "copy move"},
		{Subscription, subscriptions},
		{InSubscribeMode, subscriptions + " ping quit reset"},
		{BeforeAuth, "auth hello quit reset"},
		{ForLockers, "ping echo select time info role wait multi exec discard unwatch script|load script|exists " +
			"command command|count command|docs command|info command|getkeys command|list " +
			"client|id client|info client|getname client|setname client|setinfo client|no-evict client|no-touch client|reply " +
			"client|tracking client|caching client|trackinginfo client|getredir " +
			"cluster|info cluster|nodes cluster|slots cluster|shards cluster|myid unsubscribe punsubscribe sunsubscribe " +
			"redlock redlock|break redlock|help redlock|hot redlock|locks redlock|masters redlock|rules redlock|status redlock|token redlock|unruled redlock|why"},
		{Console, "redlock redlock|break redlock|clients redlock|help redlock|hot redlock|locks redlock|masters redlock|rules redlock|slowlog redlock|status redlock|token redlock|unruled redlock|why"},
		{OnMasters, "ping echo time publish spublish"},
		{NeverOnLocks, "blmovem fcall fcall_ro himport|set migrate"},
		{LeavesProtocol, "sync psync replconf script|debug"},
		{Locking, "set setnx setex psetex del unlink delex delifeq eval evalsha fcall"},
		{Uncountable, subscriptions + " hello monitor " + strings.Join(ofClient, " ")},
	} {
		var got []string
		for name, spec := range all {
			if spec.Is(row.trait) {
				got = append(got, name)
			}
		}
		want := strings.Fields(row.commands)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%b: got %s, want %s", row.trait, got, want)
		}
	}
	if unknown := (*Spec)(nil); unknown.Is(^Traits(0)) {
		t.Error("an unknown command has a trait")
	}
	if names := slices.Collect(maps.Keys(all)); len(names) < 300 {
		t.Errorf("only %d commands were looked at", len(names))
	}
}

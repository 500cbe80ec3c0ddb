package proxy

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// The commands of each trait, and that the table knows them all.
func TestCommandTraits(t *testing.T) {
	table := builtinCommands()
	all := map[string]*commandSpec{}
	for spec := range table.all() {
		all[spec.name] = spec
	}
	for name := range commandTraits {
		if all[name] == nil {
			t.Errorf("the table does not know %s", name)
		}
	}
	var ofClient []string
	for name := range all {
		if strings.HasPrefix(name, "client|") {
			ofClient = append(ofClient, name)
		}
	}
	const subscriptions = "subscribe psubscribe ssubscribe unsubscribe punsubscribe sunsubscribe"
	for _, row := range []struct {
		trait    traits
		commands string
	}{
		{traitSort, "sort"},
		{traitMigrate, "migrate"},
		{traitScript, "eval evalsha eval_ro evalsha_ro fcall fcall_ro"},
		{traitSplit, "del unlink exists touch mget"},
		{traitElsewhere, "copy move"},
		{traitSubscription, subscriptions},
		{traitRestricted, subscriptions + " ping quit reset"},
		{traitBeforeAuth, "auth hello quit reset"},
		{traitForLockers, "ping echo select time info role wait multi exec discard unwatch script|load script|exists " +
			"command command|count command|docs command|info command|getkeys command|list " +
			"client|id client|info client|getname client|setname client|setinfo client|no-evict client|no-touch client|reply " +
			"client|tracking client|caching client|trackinginfo client|getredir " +
			"cluster|info cluster|nodes cluster|slots cluster|shards cluster|myid unsubscribe punsubscribe sunsubscribe"},
		{traitOnMasters, "ping echo time publish spublish"},
		{traitNeverOnLocks, "fcall fcall_ro migrate"},
		{traitNotProtocol, "sync psync replconf script|debug"},
		{traitNotCounted, subscriptions + " hello monitor " + strings.Join(ofClient, " ")},
	} {
		var got []string
		for name, spec := range all {
			if spec.is(row.trait) {
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
	if unknown := (*commandSpec)(nil); unknown.is(^traits(0)) {
		t.Error("an unknown command has a trait")
	}
	if names := slices.Collect(maps.Keys(all)); len(names) < 300 {
		t.Errorf("only %d commands were looked at", len(names))
	}
}

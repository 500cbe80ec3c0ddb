package corpus

import (
	"maps"
	"slices"
	"testing"

	"redlock-proxy/integration/rig"
)

// newerExamples are for commands and options of Valkey 9, which came after examplesUpTo. P and P:2 are
// no locks.
var newerExamples = exampleLines{
	"delifeq": {"K 10", "K other", "K \"\"", "K", "P 1", "SET K me PX 100000; DELIFEQ K you; EXISTS K; DELIFEQ K me; EXISTS K"},
	"hexpire": {"K 100 FIELDS 1 f", "K 0 FIELDS 2 f g", "K 100 XX FIELDS 1 f", "K x FIELDS 1 f", "K 100 FIELDS 3 f", "K 100 FIELDS 0"},
	"hgetdel": {"K FIELDS 1 f", "K FIELDS 3 f g h", "K FIELDS 2 f", "K BOGUS 1 f"},
	"hgetex":  {"K FIELDS 1 f", "K EX 100 FIELDS 2 f h", "K PERSIST FIELDS 1 g", "K PX x FIELDS 1 f"},
	"hsetex": {"K FIELDS 1 f v", "K EX 100 FIELDS 2 f v h w", "K FNX FIELDS 1 f v", "K FXX EX 100 FIELDS 1 f v", "K EX x FIELDS 1 f v", "K FIELDS 2 f v",
		"HSETEX P EX 100 FIELDS 1 f v; HGET P f; DEL P"},
	"hpersist": {"K FIELDS 1 f", "HSETEX K EX 100 FIELDS 1 f v; HPERSIST K FIELDS 1 f; HTTL K FIELDS 1 f"},
	"msetex": {"1 K v", "2 K v K2 w EX 100", "2 K v K2 w NX", "2 K3 v K2 w NX", "2 K v K2 w XX KEEPTTL", "3 K v", "x K v", "1 K v BOGUS",
		"MSETEX 2 P 1 P:2 2 EX 100; GET P:2; DEL P P:2"},
	"set": {"K v IFEQ 10", "K v IFEQ 10 PX 100000", "K v IFEQ other GET", "K v IFEQ abc KEEPTTL", "K v NX IFEQ 10", "K v IFEQ",
		"SET P 1; SET P 2 IFEQ 1; SET P 3 IFEQ 1 GET; GET P; DEL P",
		"SET K me NX PX 100000; SET K you IFEQ other; SET K me IFEQ me PX 200000; GET K; DELIFEQ K me; GET K"},
}

// NewerExamples is Examples for the commands of newerExamples. All of them must be known to the server.
func NewerExamples(t *testing.T, server *rig.Server) []Scenario {
	t.Helper()
	keyed := keyedCommands(t, server)
	var out []Scenario
	for _, name := range slices.Sorted(maps.Keys(newerExamples)) {
		if _, ok := keyed[name]; !ok {
			t.Errorf("the server has no keyed command %s", name)
		}
		for _, text := range newerExamples[name] {
			out = append(out, exampleScenario(name, text)...)
		}
	}
	return filled(out, placeholders(t, server))
}

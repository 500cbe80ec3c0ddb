package transparency

import (
	"fmt"
	"slices"
	"testing"

	"redlock-proxy/integration/corpus"
	"redlock-proxy/integration/layer"
	"redlock-proxy/integration/rig"
)

// TestCorpus sends the commands of lock libraries, on lock keys, to the proxy and to a
// plain Redis. The replies must be the same bytes, in RESP2 and RESP3. Every master must
// end with the same contents as the plain Redis.
func TestCorpus(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	plain := rig.StartServer(t, "plain")
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			d := corpus.Differential{Plain: plain, Addr: c.Proxy.Addr(), Protocol: protocol, States: c.WaitQuorumStates}
			d.Run(t, corpus.All())
		})
	}
}

// TestCorpusIsRepeatable runs the corpus and the examples on two plain servers. They must
// agree, or a difference between the proxy and Redis would mean nothing. Steps that only
// the proxy declines have no counterpart here.
func TestCorpusIsRepeatable(t *testing.T) {
	t.Parallel()
	plain, twin := rig.StartServer(t, "plain"), rig.StartServer(t, "twin")
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			d := corpus.Differential{Plain: plain, Addr: twin.Addr(), Protocol: protocol}
			scenarios := slices.Concat(corpus.All(), corpus.Examples(t, plain))
			d.Run(t, slices.DeleteFunc(scenarios, corpus.Scenario.Declined))
		})
	}
}

// TestEveryKeyedCommand is TestCorpus for every command with keys.
func TestEveryKeyedCommand(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	plain := rig.StartServer(t, "plain")
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			d := corpus.Differential{Plain: plain, Addr: c.Proxy.Addr(), Protocol: protocol, States: c.WaitQuorumStates}
			d.Run(t, corpus.Examples(t, plain))
		})
	}
}

// inRedisWords changes the one error of Valkey that libraries know only in Redis's words.
func inRedisWords(reply []byte) []byte {
	if string(reply) == "-NOSCRIPT No matching script.\r\n" {
		return []byte("-NOSCRIPT No matching script. Please use EVAL.\r\n")
	}
	return reply
}

// TestCorpusOverValkey: the commands of lock libraries get the same bytes from a proxy
// over Valkey servers as from one Valkey server, but for that error.
func TestCorpusOverValkey(t *testing.T) {
	layer.Only(t, layer.Long, "runs over Valkey")
	rig.Need(t, rig.ValkeyServer)
	c := rig.StartServersOf(t, "valkey-server")
	c.Proxy = c.AddProxy(t, rig.Options{})
	plain := startOf(t, "valkey-server", "plain")
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			d := corpus.Differential{Plain: plain, Addr: c.Proxy.Addr(), Protocol: protocol, States: c.WaitQuorumStates, Reword: inRedisWords}
			d.Run(t, corpus.All())
		})
	}
}

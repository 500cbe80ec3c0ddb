package faults

import (
	"fmt"
	"testing"
	"time"

	"redlock-proxy/integration/rig"
	"redlock-proxy/integration/work"
)

// TestPacketsAreLost loses packets of real connections, while clients of two proxies lock: one of twenty anywhere; all that two
// masters say; and all to and from two masters, of which one dies unheard, so that its connections are half open.
// testdata/scripts/network.txt has more, over links of the suite.
func TestPacketsAreLost(t *testing.T) {
	network := rig.OwnNetwork(t, "faults")
	if network == nil {
		return
	}
	options := rig.Options{MasterTimeout: 500 * time.Millisecond, RestartDelay: 2100 * time.Millisecond, MaxQuarantine: 4 * time.Second, LogLevel: "info"}
	c := rig.StartCluster(t, options)
	second := c.AddProxy(t, options)
	both, lost := []*rig.Proxy{c.Proxy, second}, c.Masters[:rig.MasterCount-rig.Quorum]
	w := work.Start(t, work.Options{At: work.Through(both...), Keepers: 1})
	await := func(state string) {
		t.Helper()
		for _, p := range both {
			for _, master := range lost {
				p.WaitState(t, master, state)
			}
		}
		w.GoesOn(t, 0, 1)
	}
	await("voting")

	network.Lose("-m statistic --mode random --probability 0.05")
	w.GoesOn(t, 0, 1)
	network.Heal()
	await("voting")

	for _, master := range lost {
		network.Lose(fmt.Sprint("--sport ", master.Port))
	}
	await("unreachable")
	network.Heal()
	await("voting")

	for _, master := range lost {
		network.Lose(fmt.Sprint("--sport ", master.Port))
		network.Lose(fmt.Sprint("--dport ", master.Port))
	}
	lost[0].Kill()
	await("unreachable")
	network.Heal()
	lost[0].Start(t)
	await("voting")
	w.Check(t)
}

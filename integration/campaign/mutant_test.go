package campaign

import (
	"errors"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"redlock-proxy/integration/fault"
	"redlock-proxy/integration/layer"
	"redlock-proxy/integration/rig"
)

// unchecked leaves out a rule: the votes of a batch count only if the check behind it says
// that the master is voting.
var unchecked = rig.Change{
	File: "redlock/stream/batch.go",
	Old:  "j = s.judge(last, in.replies[in.missing-checkReplies:], received)",
	New:  "s.judge(last, in.replies[in.missing-checkReplies:], received)",
}

// TestCampaignFindsUncheckedMasters: if the proxy lets masters vote that have forgotten
// their locks, for whatever reason, the campaign finds two holders. Otherwise it would prove
// nothing when it finds none.
func TestCampaignFindsUncheckedMasters(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "redlock-proxy-unchecked")
	rig.BuildChanged(t, binary, unchecked)
	decks := map[string][]campaignFault{"all masters": {{fault.Forget + " all", forgetAll}}}
	for _, how := range amnesias {
		decks[how.name] = []campaignFault{{how.name, aimedAmnesia(how)}}
	}
	for _, name := range slices.Sorted(maps.Keys(decks)) {
		t.Run(name, func(t *testing.T) {
			c := startCampaign(t, binary)
			d := &director{campaign: c, random: rand.New(rand.NewPCG(layer.Seed(t), 0)), deck: decks[name], grantsBetween: usualCalm}
			until := time.Now().Add(5 * rig.Patience) // it usually takes seconds, but the lock that a fault meets is chance
			c.run(d, func() bool { return c.work.Breached() || time.Now().After(until) })
			for _, p := range c.proxies { // one that has just begun would die of the signal that ends it
				rig.WaitFor(t, "the proxy answers", func() error {
					if !p.Lives() {
						return errors.New("it does not answer yet")
					}
					return nil
				})
			}
			if !c.work.Breached() {
				t.Fatal("no two clients ever held a lock together, although masters that had forgotten it voted")
			}
		})
	}
}

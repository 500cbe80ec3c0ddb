package campaign

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/rig"
)

// unchecked leaves out a rule: the votes of a batch count only if the check behind it says
// that the master is certified.
var unchecked = struct{ file, old, new string }{
	file: "../redlock/stream/batch.go",
	old:  "j = s.judge(last, in.replies[in.missing-checkReplies:], time.Now())",
	new:  "s.judge(last, in.replies[in.missing-checkReplies:], time.Now())",
}

// TestCampaignFindsUncheckedMasters: if the proxy lets masters vote that have forgotten
// their locks, for whatever reason, the campaign finds two holders. Otherwise it would prove
// nothing when it finds none.
func TestCampaignFindsUncheckedMasters(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "redlock-proxy-unchecked")
	if err := rig.BuildProxy(binary, "-overlay", overlayOf(t)); err != nil {
		t.Fatal(err)
	}
	decks := map[string][]campaignFault{"all masters": {{"kill all", killAll}}}
	for _, how := range amnesias {
		decks[how.name] = []campaignFault{{how.name, aimedAmnesia(how)}}
	}
	for _, name := range slices.Sorted(maps.Keys(decks)) {
		t.Run(name, func(t *testing.T) {
			c := startCampaign(t, binary)
			d := &director{campaign: c, random: rand.New(rand.NewPCG(campaignSeed(t), 0)), deck: decks[name], grantsBetween: usualCalm}
			until := time.Now().Add(5 * rig.Patience) // it usually takes seconds, but the lock that a fault meets is chance
			c.run(d, func() bool { return c.breached() || time.Now().After(until) })
			if !c.breached() {
				t.Fatal("no two clients ever held a lock together, although masters that had forgotten it voted")
			}
		})
	}
}

// overlayOf writes the changed file and an overlay for the go command that uses it.
func overlayOf(t *testing.T) string {
	t.Helper()
	source, err := filepath.Abs(unchecked.file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), unchecked.old); n != 1 {
		t.Fatalf("%s has this %d times instead of once: %s", unchecked.file, n, unchecked.old)
	}
	dir := t.TempDir()
	changed, list := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{source: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{
		changed: strings.Replace(string(text), unchecked.old, unchecked.new, 1),
		list:    string(overlay),
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

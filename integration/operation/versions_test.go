package operation

import (
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/rig"
)

const markerKey = "redlock-proxy:master"

// readBy returns the versions that read the markers on the masters now, as the changelog has them.
func readBy(t *testing.T, text string) (versions string) {
	t.Helper()
	rows := regexp.MustCompile("(?m)^\\| `(redlock-proxy/\\d+)`(, and ends with ` token=` and a number)? \\| [^|]+ \\| ([^|]+) \\|$").FindAllStringSubmatch(rig.ReadFile(t, "../deploy/CHANGELOG.md"), -1)
	for _, row := range rows { // a later row is narrower
		if strings.HasPrefix(text, row[1]+" ") && (row[2] == "" || strings.Contains(text, " token=")) {
			versions = row[3]
		}
	}
	return versions
}

// number returns the version of a proxy.
func number(t *testing.T, binary string) string {
	t.Helper()
	out, err := exec.Command(binary, "-version").Output()
	found := regexp.MustCompile(`\b(\d+\.\d+\.\d+) `).FindSubmatch(out)
	if err != nil || found == nil {
		t.Fatalf("-version: %v, %s", err, out)
	}
	return string(found[1])
}

// TestChangelogSaysWhoReadsTheMarkers: this version is among those that read the markers that it writes, and the
// changelog has an entry for it.
func TestChangelogSaysWhoReadsTheMarkers(t *testing.T) {
	own := number(t, rig.ProxyBinary)
	for _, text := range []string{"redlock-proxy/2 db=0", "redlock-proxy/2 db=0 token=1", "redlock-proxy/4 db=0", "redlock-proxy/4 db=0 token=1"} {
		if versions := strings.Split(readBy(t, text), ", "); !slices.Contains(versions, own) {
			t.Errorf("the marker %q is read by these versions, says the changelog: %q", text, versions)
		}
	}
	if !strings.Contains(rig.ReadFile(t, "../deploy/CHANGELOG.md"), "\n## ["+own+"] ") {
		t.Errorf("the changelog has no entry for %s", own)
	}
}

// TestMarkersOfEarlierVersionsAreTakenOver starts the proxy on masters with markers that an earlier
// version wrote. The masters vote at once, and a lock that was held is held. What the proxy writes
// is read by that version.
func TestMarkersOfEarlierVersionsAreTakenOver(t *testing.T) {
	t.Parallel()
	const text = "redlock-proxy/2 db=0 set=09f8569bc8c18b88 member=%d/3 epoch=1 joined=1,1,1 replid=%.12s run=%s since=0 quarantine=0 longest=600000 before=0 turned=1795443196871"
	written := regexp.MustCompile(`^redlock-proxy/2 db=0 set=09f8569bc8c18b88 member=[123]/3 epoch=1 joined=1,1,1 replid=[0-9a-f]+ run=[0-9a-f]+ since=0 quarantine=0 longest=600000 before=\d+ turned=\d+$`)
	options := rig.Options{Upstream: "none", NotNew: true, RestartDelay: time.Hour, MaxQuarantine: time.Hour}
	var masters []*rig.Server
	for i := range 3 {
		m := rig.StartServer(t, fmt.Sprintf("master%d", i+1))
		masters, options.Masters = append(masters, m), append(options.Masters, m.URL())
		own := fmt.Sprintf(text, i+1, infoField(t, m, "master_replid"), infoField(t, m, "run_id"))
		for key, value := range map[string]string{markerKey: own, "lock:held": "its-holder"} {
			if err := m.Direct.Set(t.Context(), key, value, 0).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	p := rig.StartProxy(t, options) // a quarantine would be an hour
	client := p.Client(t)
	if ok, err := rig.Acquire(t.Context(), client, "lock:held", "another", time.Minute); ok || err != nil {
		t.Errorf("a lock that is held is taken: %v %v", ok, err)
	}
	rig.MustAcquire(t, client, "lock:free", "another", time.Minute)
	for _, m := range masters {
		p.WaitState(t, m, "voting")
	}
	for _, m := range masters {
		if text, _ := m.Value(t, markerKey); !written.MatchString(text) {
			t.Errorf("%s has the marker %q", m.Name, text)
		}
	}
}

func infoField(t *testing.T, m *rig.Server, name string) string {
	t.Helper()
	info, err := m.Direct.Info(t.Context()).Result()
	_, rest, found := strings.Cut(info, "\n"+name+":")
	value, _, _ := strings.Cut(rest, "\r")
	if err != nil || !found {
		t.Fatal(name, err)
	}
	return value
}

package operation

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/history"
	"redlock-proxy/integration/rig"
)

const markerKey = "redlock-proxy:master"

// earlier makes the proxy one that cannot read what is on the masters once their number was changed.
// So were the versions before that, and so will be this one if the markers change again.
var earlier = rig.Change{
	File: "redlock/marker/marker.go",
	Old:  `ResizedVersion = "redlock-proxy/4"`,
	New:  `ResizedVersion = "redlock-proxy/3"`,
}

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

// readHere requires that this version is among those that read the markers of these masters, and that
// the changelog has an entry for it.
func readHere(t *testing.T, begin string, masters ...*rig.Server) {
	t.Helper()
	own := number(t, rig.ProxyBinary)
	for _, m := range masters {
		text, _ := m.Value(t, markerKey)
		if versions := strings.Split(readBy(t, text), ", "); !strings.HasPrefix(text, begin) || !slices.Contains(versions, own) {
			t.Errorf("%s has the marker %q, which these versions read, says the changelog: %q", m.Name, text, versions)
		}
	}
	if !strings.Contains(rig.ReadFile(t, "../deploy/CHANGELOG.md"), "\n## ["+own+"] ") {
		t.Errorf("the changelog has no entry for %s", own)
	}
}

// TestTwoVersionsRunTogether runs a proxy of an earlier version and one of this version. Both lock,
// also when the later one gave a fencing token, and was replaced by the earlier one for a while: that is
// the way back. Until the later one changes the number of masters. Then the earlier one votes no more, says that it
// must be updated, and does not bring masters back that the later one cannot reach: they would be a
// quorum for it, while the later one has a quorum of the others.
func TestTwoVersionsRunTogether(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "redlock-proxy-earlier")
	rig.BuildChanged(t, binary, earlier)
	r := &resizing{cluster: rig.StartServers(t), resource: &history.Register{Key: "lock:contended"}}
	r.options = r.cluster.With(rig.Options{MasterTimeout: 500 * time.Millisecond, RestartDelay: 2100 * time.Millisecond, MaxQuarantine: 4 * time.Second, LogLevel: "info"})
	before := r.of(3)
	before.Binary = binary
	old := rig.StartProxy(t, before)

	// The later proxy reaches the first two masters by links.
	var links []*rig.Link
	for i := range 2 {
		links = append(links, rig.StartLink(t, r.cluster.Masters[i].Addr()))
		r.options.Masters[i] = "redis://" + links[i].Addr()
	}
	r.options.NotNew = true
	later := rig.StartProxy(t, r.of(3))
	r.proxies = []*rig.Proxy{old, later}
	r.ctx, r.stop = context.WithCancel(t.Context())
	t.Cleanup(func() {
		r.stop()
		r.working.Wait()
	})
	for i := range 4 {
		client := r.proxies[i%2].Client(t)
		r.working.Go(func() { r.contend(client, i) })
	}
	r.goesOn(t)
	third := r.cluster.Masters[2]
	third.Kill()
	third.Start(t)
	for _, p := range r.proxies {
		p.WaitState(t, third, "voting")
	}
	r.goesOn(t)
	readHere(t, "redlock-proxy/2 ", r.cluster.Masters[:3]...)

	client := later.Client(t)
	rig.MustAcquire(t, client, "lock:fenced", "token-of-the-fenced-client", rig.LongTTL)
	if err := client.Do(t.Context(), "REDLOCK", "TOKEN", "lock:fenced", "token-of-the-fenced-client").Err(); err != nil {
		t.Fatal(err)
	}
	restart(t, later, binary) // downgraded, with a lock held, and upgraded again
	r.goesOn(t)
	if ok, err := rig.Acquire(t.Context(), client, "lock:fenced", "token-of-another-client", rig.LongTTL); ok || err != nil {
		t.Errorf("a lock that is held is taken after the way back: %v %v", ok, err)
	}
	restart(t, later, rig.ProxyBinary)
	rig.MustRelease(t, client, "lock:fenced", "token-of-the-fenced-client")
	readHere(t, "redlock-proxy/2 ", r.cluster.Masters[:3]...)

	for _, n := range []int{4, 5} {
		r.mayChange(t, later)
		later.Reload(t, r.of(n), "applied")
		vote(t, later, r.options.Masters[:n])
	}
	for _, master := range r.cluster.Masters[:3] {
		old.WaitState(t, master, "rejected")
	}
	readHere(t, "redlock-proxy/4 ", r.cluster.Masters...)
	if log := old.Proc.Log.String(); !strings.Contains(log, "so update this proxy; do not delete the key "+markerKey) {
		t.Errorf("it does not say what to do:\n%s", old.Proc.Log.Tail(10))
	}
	r.goesOn(t)

	for i, link := range links {
		link.SetDown(true)
		if err := r.cluster.Masters[i].Direct.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	rig.WaitFor(t, "the earlier proxy has given up to mend them", func() error {
		for _, master := range r.cluster.Masters[:2] {
			if !regexp.MustCompile("master=" + master.Addr() + ".*a later version of this program has taken over the masters").MatchString(old.Proc.Log.String()) {
				return errors.New(old.Proc.Log.Tail(3))
			}
		}
		return nil
	})
	for _, master := range r.cluster.Masters[:2] {
		if text, found := master.Value(t, markerKey); found {
			t.Errorf("the earlier proxy has written %q to %s", text, master.Name)
		}
	}
	r.goesOn(t)
	for _, link := range links {
		link.SetDown(false)
	}
	vote(t, later, r.options.Masters)

	// It is updated.
	old.Configure(t, r.of(5))
	restart(t, old, rig.ProxyBinary)
	vote(t, old, r.options.Masters)
	r.goesOn(t)
	r.stop()
	r.working.Wait()
	if len(r.resource.Breaches) > 0 {
		t.Errorf("%d times two clients held the lock, first: %s", len(r.resource.Breaches), r.resource.Breaches[0].What)
	}
}

// restart ends a proxy and starts it again as this binary.
func restart(t *testing.T, p *rig.Proxy, binary string) {
	t.Helper()
	if code, err := p.Proc.Stop(rig.Patience); code != 0 || err != nil {
		t.Fatalf("it ended with %d: %v", code, err)
	}
	p.Binary = binary
	p.Start(t)
	rig.WaitFor(t, "it is ready again", p.Ready)
}

// vote waits until all masters vote for a proxy.
func vote(t *testing.T, p *rig.Proxy, urls []string) {
	t.Helper()
	rig.WaitFor(t, "all masters vote", func() error {
		for _, url := range urls {
			name := strings.TrimPrefix(url, "redis://")
			if state := p.StateOf(t, name); state != "voting" {
				return fmt.Errorf("%s is %s\n%s", name, state, p.Proc.Log.Tail(5))
			}
		}
		return nil
	})
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
	vote(t, p, options.Masters)
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

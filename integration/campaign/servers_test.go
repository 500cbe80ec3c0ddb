package campaign

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/rig"
)

// The faults of this file come from an operator: roles, rights and settings that change
// while locks are held. A bad time source that sets clocks is here, too.

// An olderCopy is another server with a master's contents of a while ago.
type olderCopy struct{ spare *rig.Server }

// take copies a master's contents as they are now.
func (o *olderCopy) take(t *testing.T, master *rig.Server) {
	if o.spare == nil {
		o.spare = rig.StartServer(t, "spare", "--repl-diskless-sync-delay", "0")
	}
	copyFrom(t, o.spare, master)
}

// copyFrom makes the server a replica of another until it has all of that server's contents.
// Then it makes it a master again.
func copyFrom(t *testing.T, r *rig.Server, other *rig.Server) {
	t.Helper()
	ctx := context.Background()
	if err := r.Direct.ReplicaOf(ctx, "127.0.0.1", strconv.Itoa(other.Port)).Err(); err != nil {
		t.Fatalf("REPLICAOF on %s: %v", r.Name, err)
	}
	rig.WaitFor(t, r.Name+" has a copy of "+other.Name, func() error {
		info, err := r.Direct.Info(ctx, "replication").Result()
		if err == nil && !strings.Contains(info, "master_link_status:up") {
			err = fmt.Errorf("%s", info)
		}
		return err
	})
	if err := r.Direct.ReplicaOf(ctx, "NO", "ONE").Err(); err != nil {
		t.Fatalf("REPLICAOF NO ONE on %s: %v", r.Name, err)
	}
}

// A copied master has its earlier contents again. The causes are a failover to a replica
// that was behind and back again, or a restored snapshot.
var copied = amnesia{
	name: "older copy",
	prepare: func(d *director, master int) {
		d.campaign.older.take(d.campaign.t, d.campaign.Masters[master])
	},
	forget: func(d *director, master int) func() {
		copyFrom(d.campaign.t, d.campaign.Masters[master], d.campaign.older.spare)
		return func() {}
	},
}

// swapped exchanges two databases, including their markers.
var swapped = amnesia{
	name: "SWAPDB",
	forget: func(d *director, master int) func() {
		d.mustAnswer(master, "SWAPDB", 0, otherDatabase)
		return func() {}
	},
}

func (d *director) mustAnswer(master int, command ...any) {
	ctx, cancel := context.WithTimeout(context.Background(), rig.Patience)
	defer cancel()
	if err := d.campaign.Masters[master].Direct.Do(ctx, command...).Err(); err != nil {
		d.campaign.t.Fatalf("%v on master %d: %v", command, master+1, err)
	}
}

// jumpManyClocks is a bad time source: most clocks jump together, and later jump back.
func jumpManyClocks(d *director) (func(), time.Duration, bool) {
	d.endAll()
	masters, unclaim, ok := d.claim(rig.Quorum + d.random.IntN(rig.MasterCount-rig.Quorum))
	if !ok {
		return nil, 0, false
	}
	by := rig.Between(d.random, longestLease, longestLease+time.Second)
	d.aim(time.Time{})
	d.note("the clocks of %s jump by %s together", names(masters), by)
	for _, i := range masters {
		d.campaign.Masters[i].Clock.Set(d.campaign.t, by)
	}
	return func() {
		for _, i := range masters {
			d.campaign.Masters[i].Clock.Set(d.campaign.t, 0)
		}
		unclaim()
	}, rig.Between(d.random, 300*time.Millisecond, longestLease), true
}

// takeRights takes a right away from the proxies' user.
func takeRights(d *director) (func(), time.Duration, bool) {
	masters, unclaim, ok := d.claim(1 + d.random.IntN(rig.MasterCount/2+1))
	if !ok {
		return nil, 0, false
	}
	right := []string{"@scripting", "@write", "del", "get", "dump", "restore"}[d.random.IntN(6)]
	d.note("%s lose the right %s", names(masters), right)
	for _, i := range masters {
		d.mustAnswer(i, "ACL", "SETUSER", "default", "-"+right)
	}
	return func() {
		for _, i := range masters {
			d.mustAnswer(i, "ACL", "SETUSER", "default", "+@all")
		}
		unclaim()
	}, rig.Between(d.random, 50*time.Millisecond, 2*time.Second), true
}

// withoutReplicas makes masters refuse writes because they have too few replicas, which is
// the usual setting for masters managed by Sentinels.
func withoutReplicas(d *director) (func(), time.Duration, bool) {
	masters, unclaim, ok := d.claim(1 + d.random.IntN(rig.MasterCount/2+1))
	if !ok {
		return nil, 0, false
	}
	d.note("%s lack replicas", names(masters))
	for _, i := range masters {
		d.mustAnswer(i, "CONFIG", "SET", "min-replicas-to-write", "1")
	}
	return func() {
		for _, i := range masters {
			d.mustAnswer(i, "CONFIG", "SET", "min-replicas-to-write", "0")
		}
		unclaim()
	}, rig.Between(d.random, 50*time.Millisecond, 2*time.Second), true
}

// slowMaster makes one master slow for every proxy for a while, so that its votes arrive after
// the verdict.
func slowMaster(d *director) (func(), time.Duration, bool) {
	master := d.random.IntN(rig.MasterCount)
	for _, links := range d.campaign.links {
		if d.claimed[links[master]] {
			return nil, 0, false
		}
	}
	by := rig.Between(d.random, 5*time.Millisecond, 60*time.Millisecond)
	d.note("master %d is far away, %s", master+1, by)
	for _, links := range d.campaign.links {
		d.claimed[links[master]] = true
		links[master].Delay(by)
	}
	return func() {
		for _, links := range d.campaign.links {
			links[master].Delay(0)
			delete(d.claimed, links[master])
		}
	}, rig.Between(d.random, time.Second, 4*time.Second), true
}

// TestOlderCopy: the fault "older copy" means something only if the earlier contents are
// really back.
func TestOlderCopy(t *testing.T) {
	var older olderCopy
	master := rig.StartServer(t, "master", "--repl-diskless-sync-delay", "0")
	ctx := t.Context()
	set := func(value string) {
		if err := master.Direct.Set(ctx, "key", value, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	set("before")
	older.take(t, master)
	set("after")
	run := runID(t, master)
	copyFrom(t, master, older.spare)
	if value, _ := master.Value(t, "key"); value != "before" {
		t.Errorf("the master holds %q, want what it held before", value)
	}
	if now := runID(t, master); now != run {
		t.Errorf("the master's run id was %s and is %s: it was restarted", run, now)
	}
}

func runID(t testing.TB, r *rig.Server) string {
	t.Helper()
	info, err := r.Direct.Info(t.Context(), "server").Result()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(info, "run_id:")
	id, _, _ := strings.Cut(rest, "\r\n")
	return id
}

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

// refusing makes a fault of commands that an operator sends to some masters, and of one that makes them take writes again.
func refusing(begin func(d *director) []any, end ...any) func(*director) (func(), time.Duration, bool) {
	return onMasters(rig.MasterCount/2+1, 50*time.Millisecond, 2*time.Second,
		func(d *director, masters []int) string {
			command := begin(d)
			for _, i := range masters {
				d.mustAnswer(i, command...)
			}
			return fmt.Sprint(command)
		},
		func(d *director, master int) { d.mustAnswer(master, end...) })
}

// takeRights takes a right away from the proxies' user.
var takeRights = refusing(func(d *director) []any {
	right := []string{"@scripting", "@write", "del", "get", "dump", "restore"}[d.random.IntN(6)]
	return []any{"ACL", "SETUSER", "default", "-" + right}
}, "ACL", "SETUSER", "default", "+@all")

// withoutReplicas makes masters refuse writes because they have too few replicas, which is
// the usual setting for masters managed by Sentinels.
var withoutReplicas = refusing(func(*director) []any {
	return []any{"CONFIG", "SET", "min-replicas-to-write", "1"}
}, "CONFIG", "SET", "min-replicas-to-write", "0")

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

// resize takes the last master out of the list of all proxies, lets another one forget, and puts the first back, empty. The
// operator waits until each change may come, and gives one proxy after the other the list.
func resize(d *director) (func(), time.Duration, bool) {
	d.endAll() // an operator changes the number when all is well
	const last = rig.MasterCount - 1
	forgets := d.random.IntN(last)
	d.note("master %d leaves the list of masters", last+1)
	d.list(last)
	d.aim(time.Now())
	d.note("kill -9 of master %d", forgets+1)
	d.campaign.Masters[forgets].Kill()
	d.campaign.Masters[forgets].Start(d.campaign.t)
	d.aim(time.Now())
	d.mustFlush(last, flushEverything)
	d.list(rig.MasterCount)
	d.note("master %d is in the list again", last+1)
	return nil, 0, true
}

// list reloads all proxies with the first n masters. A change is refused until the one before is complete.
func (d *director) list(n int) {
	for i, p := range d.campaign.proxies {
		options := d.campaign.options[i]
		options.Masters = options.Masters[:n]
		rig.WaitFor(d.campaign.t, "the number of masters may be changed", func() error {
			if !p.Lives() {
				return fmt.Errorf("proxy %d does not answer", i+1)
			}
			d.campaign.emptyOthers(d.campaign.t)
			p.Configure(d.campaign.t, options)
			if result := p.Signalled(d.campaign.t); result != "applied" {
				return fmt.Errorf("it is %s: %s", result, p.Proc.Log.Tail(2))
			}
			return nil
		})
	}
}

// failOver is what Sentinels do when a master is lost: another server with its contents of a while ago takes over its
// name. Here it takes over its address, too. The old server's latest locks are not known to it.
func failOver(d *director) (func(), time.Duration, bool) {
	masters, unclaim, ok := d.claim(1)
	if !ok {
		return nil, 0, false
	}
	old := d.campaign.Masters[masters[0]]
	d.campaign.older.take(d.campaign.t, old)
	d.aim(time.Now()) // a lock is held that the replica lacks
	d.note("%s fail over to a replica that is behind", names(masters))
	for _, links := range d.campaign.links {
		links[masters[0]].Lead(d.campaign.older.spare.Addr())
	}
	return func() {
		// The old server lives on meanwhile. It comes back with what it had, as the next failover leaves it.
		d.note("%s fail over again, to the first server", names(masters))
		for _, links := range d.campaign.links {
			links[masters[0]].Lead(old.Addr())
		}
		unclaim()
	}, rig.Between(d.random, 300*time.Millisecond, 2*longestLease), true
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

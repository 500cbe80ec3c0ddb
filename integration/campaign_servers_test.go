package integration

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The faults of this file are an operator's: roles, rights and settings that
// change while locks are held, and clocks that a bad time source sets.

// An olderCopy is what a master's memory was a while ago, on another server.
type olderCopy struct{ spare *redisServer }

// take makes a copy of a master's memory as it is now.
func (o *olderCopy) take(t *testing.T, master *redisServer) {
	if o.spare == nil {
		o.spare = startRedis(t, "spare", "--repl-diskless-sync-delay", "0")
	}
	o.spare.copyFrom(t, master)
}

// copyFrom makes the server a replica of another until it has all of its
// memory, and then a master again.
func (r *redisServer) copyFrom(t *testing.T, other *redisServer) {
	t.Helper()
	ctx := context.Background()
	if err := r.direct.ReplicaOf(ctx, "127.0.0.1", strconv.Itoa(other.port)).Err(); err != nil {
		t.Fatalf("REPLICAOF on %s: %v", r.name, err)
	}
	waitFor(t, r.name+" has a copy of "+other.name, func() error {
		info, err := r.direct.Info(ctx, "replication").Result()
		if err == nil && !strings.Contains(info, "master_link_status:up") {
			err = fmt.Errorf("%s", info)
		}
		return err
	})
	if err := r.direct.ReplicaOf(ctx, "NO", "ONE").Err(); err != nil {
		t.Fatalf("REPLICAOF NO ONE on %s: %v", r.name, err)
	}
}

// A copied master has its memory of before back: a failover to a replica that
// was behind and back, or a snapshot that somebody restores.
var copied = amnesia{
	name: "older copy",
	prepare: func(d *director, master int) {
		d.campaign.older.take(d.campaign.t, d.campaign.masters[master])
	},
	forget: func(d *director, master int) func() {
		d.campaign.masters[master].copyFrom(d.campaign.t, d.campaign.older.spare)
		return func() {}
	},
}

// swapped exchanges two databases, markers and all.
var swapped = amnesia{
	name: "SWAPDB",
	forget: func(d *director, master int) func() {
		d.mustAnswer(master, "SWAPDB", 0, otherDatabase)
		return func() {}
	},
}

func (d *director) mustAnswer(master int, command ...any) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := d.campaign.masters[master].direct.Do(ctx, command...).Err(); err != nil {
		d.campaign.t.Fatalf("%v on master %d: %v", command, master+1, err)
	}
}

// jumpManyClocks is a bad time source: most clocks jump together, and back.
func jumpManyClocks(d *director) (func(), time.Duration, bool) {
	d.endAll()
	masters, unclaim, ok := d.claim(quorum + d.random.IntN(masterCount-quorum))
	if !ok {
		return nil, 0, false
	}
	by := between(d.random, longestLease, longestLease+time.Second)
	d.aim(time.Time{})
	d.note("the clocks of %s jump by %s together", names(masters), by)
	for _, i := range masters {
		d.campaign.masters[i].clock.set(d.campaign.t, by)
	}
	return func() {
		for _, i := range masters {
			d.campaign.masters[i].clock.set(d.campaign.t, 0)
		}
		unclaim()
	}, between(d.random, 300*time.Millisecond, longestLease), true
}

// takeRights takes a right away from the user of the proxies.
func takeRights(d *director) (func(), time.Duration, bool) {
	masters, unclaim, ok := d.claim(1 + d.random.IntN(masterCount/2+1))
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
	}, between(d.random, 50*time.Millisecond, 2*time.Second), true
}

// withoutReplicas makes masters refuse writes for want of replicas, the usual
// setting where Sentinels manage them.
func withoutReplicas(d *director) (func(), time.Duration, bool) {
	masters, unclaim, ok := d.claim(1 + d.random.IntN(masterCount/2+1))
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
	}, between(d.random, 50*time.Millisecond, 2*time.Second), true
}

// farMaster makes one master slow for every proxy for a while, so that its votes
// come after the verdict.
func farMaster(d *director) (func(), time.Duration, bool) {
	master := d.random.IntN(masterCount)
	for _, links := range d.campaign.links {
		if d.claimed[links[master]] {
			return nil, 0, false
		}
	}
	by := between(d.random, 5*time.Millisecond, 60*time.Millisecond)
	d.note("master %d is far away, %s", master+1, by)
	for _, links := range d.campaign.links {
		d.claimed[links[master]] = true
		links[master].delay(by)
	}
	return func() {
		for _, links := range d.campaign.links {
			links[master].delay(0)
			delete(d.claimed, links[master])
		}
	}, between(d.random, time.Second, 4*time.Second), true
}

// TestOlderCopy: the fault of that name is worth something only if the memory of
// before is back.
func TestOlderCopy(t *testing.T) {
	var older olderCopy
	master := startRedis(t, "master", "--repl-diskless-sync-delay", "0")
	ctx := t.Context()
	set := func(value string) {
		if err := master.direct.Set(ctx, "key", value, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	set("before")
	older.take(t, master)
	set("after")
	run := master.runID(t)
	master.copyFrom(t, older.spare)
	if value, _ := master.value(t, "key"); value != "before" {
		t.Errorf("the master holds %q, want what it held before", value)
	}
	if now := master.runID(t); now != run {
		t.Errorf("the master's run id was %s and is %s: it was restarted", run, now)
	}
}

func (r *redisServer) runID(t testing.TB) string {
	t.Helper()
	info, err := r.direct.Info(t.Context(), "server").Result()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(info, "run_id:")
	id, _, _ := strings.Cut(rest, "\r\n")
	return id
}

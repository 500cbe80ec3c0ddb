package faults

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/rig"
)

// TestMastersThatKeepTheirKeysOnDisk: masters with an append-only file are killed, a majority of them, and come back
// with their keys. No other client gets the lock meanwhile. Afterwards its holder has it as before.
func TestMastersThatKeepTheirKeysOnDisk(t *testing.T) {
	t.Parallel()
	c := rig.StartServersOf(t, "redis-server", "--appendonly", "yes", "--appendfsync", "always", "--save", "1 1")
	c.Proxy = c.AddProxy(t, rig.Options{MasterTimeout: 2 * time.Second, MaxQuarantine: 5 * time.Second})
	holder, other := c.Proxy.Client(t), c.Proxy.Client(t)
	const key, token = "lock:kept", "the token of the holder"
	rig.MustAcquire(t, holder, key, token, rig.LongTTL)
	c.WaitHeld(t, key, token)
	for _, master := range c.Masters[:rig.Quorum] {
		master.Kill()
	}
	for _, master := range c.Masters[:rig.Quorum] {
		master.Start(t)
	}
	take := func() (bool, error) { return rig.Acquire(t.Context(), other, key, "the token of another", rig.LongTTL) }
	if taken, err := take(); taken || err != nil && !rig.NoQuorum(err) {
		t.Errorf("a second client is answered %v, %v", taken, err)
	}
	for _, master := range c.Masters {
		c.Proxy.WaitState(t, master, "voting")
	}
	if taken, err := take(); taken || err != nil {
		t.Errorf("when all masters vote again, a second client is answered %v, %v", taken, err)
	}
	if n := c.Holders(t, key, token); n < rig.Quorum {
		t.Errorf("%d masters have the lock", n)
	}
	rig.MustRelease(t, holder, key, token)
	c.WaitGone(t, key)
	rig.MustAcquire(t, other, key, "the token of another", rig.LongTTL)
}

// TestMastersThatCannotSave: two masters whose disks fail refuse writes, and locks go on. With a third one no lock is
// taken, and the state of the masters says why. When they take writes again, they vote.
func TestMastersThatCannotSave(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	client := c.Proxy.Client(t)
	fail := func(master *rig.Server) {
		t.Helper()
		ctx := t.Context()
		dir, err := master.Direct.ConfigGet(ctx, "dir").Result()
		if err == nil {
			err = os.RemoveAll(dir["dir"])
		}
		if err = errors.Join(err, master.Direct.ConfigSet(ctx, "save", "3600 1000000").Err(), master.Direct.BgSave(ctx).Err()); err != nil {
			t.Fatal(err)
		}
		rig.WaitFor(t, master.Name+" cannot save", func() error {
			info, err := master.Direct.Info(ctx, "persistence").Result()
			if err == nil && !strings.Contains(info, "rdb_last_bgsave_status:err") {
				err = errors.New("it has not failed yet")
			}
			return err
		})
	}
	rig.MustAcquire(t, client, "lock:before", "a token of sixteen bytes or more", rig.LongTTL)
	for _, master := range c.Masters[:rig.Quorum-1] {
		fail(master)
		c.Proxy.WaitState(t, master, "rejected")
	}
	rig.MustAcquire(t, client, "lock:meanwhile", "a token of sixteen bytes or more", rig.LongTTL)
	rig.MustRelease(t, client, "lock:meanwhile", "a token of sixteen bytes or more")
	fail(c.Masters[rig.Quorum-1])
	c.Proxy.WaitState(t, c.Masters[rig.Quorum-1], "rejected")
	if taken, err := rig.Acquire(t.Context(), client, "lock:new", "a token of sixteen bytes or more", rig.LongTTL); taken || !rig.NoQuorum(err) {
		t.Errorf("with three masters that cannot save: %v, %v", taken, err)
	}
	for _, master := range c.Masters[:rig.Quorum] {
		if err := master.Direct.ConfigSet(t.Context(), "stop-writes-on-bgsave-error", "no").Err(); err != nil {
			t.Fatal(err)
		}
		c.Proxy.WaitState(t, master, "voting")
	}
	rig.MustRelease(t, client, "lock:before", "a token of sixteen bytes or more")
	c.WaitGone(t, "lock:before")
	rig.MustAcquire(t, client, "lock:new", "another token of sixteen bytes", rig.LongTTL)
}

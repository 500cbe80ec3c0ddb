package campaign

import (
	"context"
	"fmt"
	"time"

	"redlock-proxy/integration/fault"
	"redlock-proxy/integration/rig"
)

// With the faults of this file, masters forget the locks that they granted.

// An amnesia makes one master forget. forget returns a function that ends the fault.
type amnesia struct {
	name string
	// prepare runs before the lock is taken that the master is to forget; nil: nothing.
	prepare func(d *director, master int)
	forget  func(d *director, master int) (end func())
}

var amnesias = []amnesia{
	{name: fault.Forget, forget: func(d *director, master int) func() {
		d.campaign.Masters[master].Kill()
		d.campaign.Masters[master].Start(d.campaign.t)
		return func() {}
	}},
	{name: "FLUSHALL", forget: func(d *director, master int) func() {
		d.mustFlush(master, flushEverything)
		return func() {}
	}},
	{name: "FLUSHDB", forget: func(d *director, master int) func() {
		d.mustFlush(master, []flush{flushFirst, flushOther}[d.random.IntN(2)])
		return func() {}
	}},
	// A clock that jumps ahead ends leases too early. When it jumps back, leases last longer.
	{name: fault.Jump, forget: func(d *director, master int) func() {
		d.jump(master, longestLease+time.Second)
		return func() { d.jump(master, 0) }
	}},
	copied,
	swapped,
}

// A flush empties databases of a master.
type flush struct{ name, script string }

var (
	flushEverything = flush{"FLUSHALL", `return redis.call('flushall')`}
	flushFirst      = flush{"FLUSHDB 0", `redis.call('select', 0) return redis.call('flushdb')`}
	flushOther      = flush{fmt.Sprint("FLUSHDB ", otherDatabase), fmt.Sprintf(`redis.call('select', %d) return redis.call('flushdb')`, otherDatabase)}
)

// flush empties a master directly, not through a proxy. It waits up to limit. A master
// that hangs is flushed when it goes on.
func (d *director) flush(master int, how flush, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return d.campaign.Masters[master].Direct.Eval(ctx, how.script, nil).Err()
}

func (d *director) mustFlush(master int, how flush) {
	if err := d.flush(master, how, rig.Patience); err != nil {
		d.campaign.t.Fatalf("%s on master %d: %v", how.name, master+1, err)
	}
}

// aim waits until a client holds a lock that was taken after the given moment and lasts for
// some time yet. Then a fault has something to break. Masters in quarantine grant nothing,
// so the wait has a limit.
func (d *director) aim(after time.Time) {
	for deadline := time.Now().Add(2 * campaignRestartDelay); time.Now().Before(deadline); {
		for _, r := range d.campaign.work.Registers {
			if r.InUse(after, longestLease/3) {
				return
			}
		}
		d.rest(0)
	}
}

var forgetMinority = onMasters(rig.MasterCount/2, 0, 600*time.Millisecond,
	func(d *director, masters []int) string {
		d.aim(time.Time{})
		for _, i := range masters {
			d.campaign.Masters[i].Kill()
		}
		return "kill -9"
	},
	func(d *director, master int) { d.campaign.Masters[master].Start(d.campaign.t) })

// forgetAll is a power failure: all masters and some or all proxies die at once and come back
// empty. Only time can tell this from a new set.
func forgetAll(d *director) (func(), time.Duration, bool) {
	d.endAll()
	d.aim(time.Time{})
	proxies := d.someProxies()
	d.note("kill -9 of all masters and of %d proxies", len(proxies))
	for _, master := range d.campaign.Masters {
		master.Kill()
	}
	for _, p := range proxies {
		p.Proc.Kill()
	}
	for i, master := range d.campaign.Masters {
		if i == rig.Quorum-1 { // the masters that are left are no quorum
			d.campaign.forgotAt = append(d.campaign.forgotAt, time.Since(d.campaign.began))
		}
		master.Start(d.campaign.t)
	}
	for _, p := range proxies {
		p.Start(d.campaign.t)
	}
	d.note("all masters and these proxies are started, empty")
	return nil, 0, true
}

// flushAll flushes all masters while proxies are away. The proxies come back at once and
// remember nothing of the set. flushAll never flushes database 0 alone: that would make a
// new set, and the other databases would not belong to it until somebody clears them, too.
func flushAll(d *director) (func(), time.Duration, bool) {
	d.endAll()
	d.aim(time.Time{})
	proxies, how := d.someProxies(), []flush{flushEverything, flushOther}[d.random.IntN(2)]
	d.note("%s on all masters, and kill -9 of %d proxies, which start at once", how.name, len(proxies))
	for _, p := range proxies {
		p.Proc.Kill()
	}
	for i := range d.campaign.Masters {
		d.mustFlush(i, how)
	}
	if how == flushEverything {
		d.campaign.forgotAt = append(d.campaign.forgotAt, time.Since(d.campaign.began))
	}
	for _, p := range proxies {
		p.Start(d.campaign.t)
	}
	return nil, 0, true
}

// someProxies picks one proxy, or all of them.
func (d *director) someProxies() []*rig.Proxy {
	if d.random.IntN(2) == 0 {
		return d.campaign.proxies
	}
	p := d.random.IntN(constantProxy)
	return d.campaign.proxies[p : p+1]
}

// flushMasters flushes most masters, or fewer, while locks are held.
func flushMasters(d *director) (func(), time.Duration, bool) {
	masters := d.random.Perm(rig.MasterCount)[:1+d.random.IntN(rig.MasterCount-1)]
	how := []flush{flushEverything, flushFirst, flushOther}[d.random.IntN(3)]
	d.aim(time.Time{})
	d.note("%s on %s", how.name, names(masters))
	for _, i := range masters {
		_ = d.flush(i, how, 100*time.Millisecond)
	}
	return nil, 0, true
}

// jump sets a master's clock. No quorum of clocks jumps within a short time. To a proxy that
// would look as if the proxy itself had been stopped.
func (d *director) jump(master int, ahead time.Duration) {
	const apart = 2 * time.Second
	for len(d.jumps) >= rig.Quorum-1 && time.Since(d.jumps[len(d.jumps)-rig.Quorum+1]) < apart {
		time.Sleep(time.Millisecond)
	}
	d.jumps = append(d.jumps, time.Now())
	d.campaign.Masters[master].Clock.Set(d.campaign.t, ahead)
}

var jumpOneClock = onMasters(1, 300*time.Millisecond, longestLease,
	func(d *director, masters []int) string {
		by := rig.Between(d.random, shortestLease/2, longestLease+time.Second)
		if d.random.IntN(3) == 0 {
			by = -by
		}
		d.aim(time.Time{})
		d.jump(masters[0], by)
		return fmt.Sprint("the clock jumps by ", by)
	},
	func(d *director, master int) { d.jump(master, 0) })

// aimAmnesia is the classic case. Two masters are unreachable while a client takes a lock,
// so a bare majority holds it. The two come back, and one of the majority forgets.
func aimAmnesia(d *director) (func(), time.Duration, bool) {
	how := amnesias[d.random.IntN(len(amnesias))]
	return aimedAmnesia(how)(d)
}

func aimedAmnesia(how amnesia) func(d *director) (func(), time.Duration, bool) {
	return func(d *director) (func(), time.Duration, bool) {
		d.endAll()
		masters, unclaim, _ := d.claim(rig.MasterCount/2 + 1)
		away, forgetful := masters[:rig.MasterCount/2], masters[rig.MasterCount/2]
		if how.prepare != nil {
			how.prepare(d, forgetful)
		}
		d.note("%s are cut off", names(away))
		for _, links := range d.campaign.links {
			for _, i := range away {
				links[i].SetDown(true)
			}
		}
		d.aim(time.Now())
		for _, links := range d.campaign.links {
			for _, i := range away {
				links[i].SetDown(false)
			}
		}
		end := how.forget(d, forgetful)
		d.note("%s are back, master %d forgets by %s", names(away), forgetful+1, how.name)
		return func() { end(); unclaim() }, longestLease, true
	}
}

package integration

import (
	"context"
	"fmt"
	"time"
)

// The faults of this file make masters forget what they granted.

// An amnesia makes one master forget. It returns how that ends.
type amnesia struct {
	name string
	// prepare comes before the lock is taken that is to be forgotten; nil: nothing.
	prepare func(d *director, master int)
	forget  func(d *director, master int) (end func())
}

var amnesias = []amnesia{
	{name: "restart", forget: func(d *director, master int) func() {
		d.campaign.masters[master].crash()
		d.campaign.masters[master].start(d.campaign.t)
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
	// A clock that jumps ends leases before their time, and one that jumps back
	// has them last longer.
	{name: "clock jump", forget: func(d *director, master int) func() {
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

// flush empties a master behind the proxies' backs, and waits so long for the
// answer. One that hangs is flushed when it goes on.
func (d *director) flush(master int, how flush, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return d.campaign.masters[master].direct.Eval(ctx, how.script, nil).Err()
}

func (d *director) mustFlush(master int, how flush) {
	if err := d.flush(master, how, patience); err != nil {
		d.campaign.t.Fatalf("%s on master %d: %v", how.name, master+1, err)
	}
}

// aim waits until a client holds a lock, taken after that moment, that stays
// with it for some time yet, so that a fault that comes now has something to
// break. Masters in quarantine grant nothing, so it may wait in vain.
func (d *director) aim(after time.Time) {
	for deadline := time.Now().Add(2 * campaignRestartDelay); time.Now().Before(deadline); {
		for _, r := range d.campaign.registers {
			if r.inUse(after, longestLease/3) {
				return
			}
		}
		d.rest(0)
	}
}

func killMinority(d *director) (func(), time.Duration, bool) {
	masters, unclaim, ok := d.claim(1 + d.random.IntN(masterCount/2))
	if !ok {
		return nil, 0, false
	}
	d.aim(time.Time{})
	d.note("kill -9 of %s", names(masters))
	for _, i := range masters {
		d.campaign.masters[i].crash()
	}
	return func() {
		for _, i := range masters {
			d.campaign.masters[i].start(d.campaign.t)
		}
		unclaim()
	}, between(d.random, 0, 600*time.Millisecond), true
}

// killAll is a power failure: all masters and some or all proxies are gone and
// come back with nothing, at once. Nothing but time can tell this from a new
// set.
func killAll(d *director) (func(), time.Duration, bool) {
	d.endAll()
	d.aim(time.Time{})
	proxies := d.someProxies()
	d.note("kill -9 of all masters and of %d proxies", len(proxies))
	for _, master := range d.campaign.masters {
		master.crash()
	}
	for _, p := range proxies {
		p.proc.Kill()
	}
	for i, master := range d.campaign.masters {
		if i == quorum-1 { // the rest is no quorum
			d.campaign.forgotAt = append(d.campaign.forgotAt, time.Since(d.campaign.began))
		}
		master.start(d.campaign.t)
	}
	for _, p := range proxies {
		p.start(d.campaign.t)
	}
	d.note("all masters and these proxies are started, empty")
	return nil, 0, true
}

// flushAll flushes all masters while proxies are away that come back at once
// and remember nothing of the set. Not database 0 alone: that makes a new set,
// to which the other databases do not belong until somebody clears them, too.
func flushAll(d *director) (func(), time.Duration, bool) {
	d.endAll()
	d.aim(time.Time{})
	proxies, how := d.someProxies(), []flush{flushEverything, flushOther}[d.random.IntN(2)]
	d.note("%s on all masters, and kill -9 of %d proxies, which start at once", how.name, len(proxies))
	for _, p := range proxies {
		p.proc.Kill()
	}
	for i := range d.campaign.masters {
		d.mustFlush(i, how)
	}
	if how == flushEverything {
		d.campaign.forgotAt = append(d.campaign.forgotAt, time.Since(d.campaign.began))
	}
	for _, p := range proxies {
		p.start(d.campaign.t)
	}
	return nil, 0, true
}

// someProxies is one proxy, or all of them.
func (d *director) someProxies() []*proxyProcess {
	if d.random.IntN(2) == 0 {
		return d.campaign.proxies
	}
	p := d.random.IntN(constantProxy)
	return d.campaign.proxies[p : p+1]
}

// flushMasters flushes most masters, or fewer, while locks are held.
func flushMasters(d *director) (func(), time.Duration, bool) {
	masters := d.random.Perm(masterCount)[:1+d.random.IntN(masterCount-1)]
	how := []flush{flushEverything, flushFirst, flushOther}[d.random.IntN(3)]
	d.aim(time.Time{})
	d.note("%s on %s", how.name, names(masters))
	for _, i := range masters {
		_ = d.flush(i, how, 100*time.Millisecond)
	}
	return nil, 0, true
}

// jump sets a master's clock. No quorum of clocks jumps within a short time: to
// a proxy that would look as if it had been stopped itself.
func (d *director) jump(master int, ahead time.Duration) {
	const apart = 2 * time.Second
	for len(d.jumps) >= quorum-1 && time.Since(d.jumps[len(d.jumps)-quorum+1]) < apart {
		time.Sleep(time.Millisecond)
	}
	d.jumps = append(d.jumps, time.Now())
	d.campaign.masters[master].clock.set(d.campaign.t, ahead)
}

func jumpOneClock(d *director) (func(), time.Duration, bool) {
	masters, unclaim, ok := d.claim(1)
	if !ok {
		return nil, 0, false
	}
	by := between(d.random, shortestLease/2, longestLease+time.Second)
	if d.random.IntN(3) == 0 {
		by = -by
	}
	d.aim(time.Time{})
	d.note("the clock of %s jumps by %s", names(masters), by)
	d.jump(masters[0], by)
	return func() {
		d.jump(masters[0], 0)
		unclaim()
	}, between(d.random, 300*time.Millisecond, longestLease), true
}

// aimAmnesia is the classic: two masters are unreachable while a lock is
// taken, so that a bare majority holds it; they come back, and one of the
// majority forgets.
func aimAmnesia(d *director) (func(), time.Duration, bool) {
	how := amnesias[d.random.IntN(len(amnesias))]
	return aimedAmnesia(how)(d)
}

func aimedAmnesia(how amnesia) func(d *director) (func(), time.Duration, bool) {
	return func(d *director) (func(), time.Duration, bool) {
		d.endAll()
		masters, unclaim, _ := d.claim(masterCount/2 + 1)
		away, forgetful := masters[:masterCount/2], masters[masterCount/2]
		if how.prepare != nil {
			how.prepare(d, forgetful)
		}
		d.note("%s are cut off", names(away))
		for _, links := range d.campaign.links {
			for _, i := range away {
				links[i].setDown(true)
			}
		}
		d.aim(time.Now())
		for _, links := range d.campaign.links {
			for _, i := range away {
				links[i].setDown(false)
			}
		}
		end := how.forget(d, forgetful)
		d.note("%s are back, master %d forgets by %s", names(away), forgetful+1, how.name)
		return func() { end(); unclaim() }, longestLease, true
	}
}

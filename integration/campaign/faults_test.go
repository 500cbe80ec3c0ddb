package campaign

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"redlock-proxy/integration/fault"
	"redlock-proxy/integration/history"
	"redlock-proxy/integration/rig"
)

// A campaignFault is a failure that lasts for a while.
type campaignFault struct {
	name string
	// strike begins the fault. It returns a function that ends it and the time after which to
	// call that. It returns false if another fault has the servers that this one needs.
	strike func(d *director) (end func(), lasts time.Duration, ok bool)
}

// A director lets faults strike, several at a time, and ends them all in the end. It uses
// one goroutine.
type director struct {
	campaign *campaign
	random   *rand.Rand
	deck     []campaignFault
	// grantsBetween is the approximate number of locks taken between two faults.
	grantsBetween int64

	drawn   []campaignFault // the faults of the shuffled deck that have not struck yet
	active  []activeFault
	claimed map[any]bool // masters, proxies and links that a fault has
	struck  map[string]int
	log     []logLine
	jumps   []time.Time
}

// A logLine is an action of the director, or a line of a proxy's log.
type logLine struct {
	at   time.Time
	text string
}

type activeFault struct {
	name string
	end  func()
	due  time.Time
}

const (
	mostFaultsAtOnce = 3
	faultPace        = 200 * time.Millisecond
	usualCalm        = 8 // grants between faults
	mostCalm         = 8 * campaignRestartDelay
)

// run lets faults strike until enough returns true.
func (d *director) run(enough func() bool) {
	d.claimed, d.struck = map[any]bool{}, map[string]int{}
	defer d.endAll()
	for !enough() {
		// Masters in quarantine grant nothing, so there would be nothing to break.
		if calm := d.campaign.work.Grants() + 1 + d.random.Int64N(2*d.grantsBetween); d.random.IntN(3) > 0 {
			for until := time.Now().Add(mostCalm); d.campaign.work.Grants() < calm && time.Now().Before(until) && !enough(); {
				d.rest(0)
			}
		}
		if len(d.active) < mostFaultsAtOnce {
			d.draw()
		}
		d.rest(rig.Between(d.random, 0, faultPace))
	}
}

// rest waits and ends the faults that are due.
func (d *director) rest(length time.Duration) {
	for over := time.Now().Add(length); ; {
		now := time.Now()
		left := d.active[:0]
		for _, f := range d.active {
			if now.Before(f.due) {
				left = append(left, f)
				continue
			}
			f.end()
			d.note("%s ends", f.name)
		}
		d.active = left
		time.Sleep(time.Millisecond)
		if !time.Now().Before(over) {
			return
		}
	}
}

func (d *director) endAll() {
	for _, f := range d.active {
		f.end()
		d.note("%s ends", f.name)
	}
	d.active = nil
}

// draw lets the next fault of the deck strike. No fault strikes again before every fault has
// struck once.
func (d *director) draw() {
	if len(d.drawn) == 0 {
		d.drawn = append(d.drawn, d.deck...)
		d.random.Shuffle(len(d.drawn), func(i, j int) { d.drawn[i], d.drawn[j] = d.drawn[j], d.drawn[i] })
	}
	for i, f := range d.drawn {
		end, lasts, ok := f.strike(d)
		if !ok {
			continue
		}
		d.drawn = append(d.drawn[:i:i], d.drawn[i+1:]...)
		d.struck[f.name]++
		if end != nil {
			d.active = append(d.active, activeFault{f.name, end, time.Now().Add(lasts)})
		}
		return
	}
}

func (d *director) note(format string, args ...any) {
	line := logLine{time.Now(), fmt.Sprintf(format, args...)}
	d.log = append(d.log, line)
	d.campaign.t.Log(history.Stamp(line.at.Sub(d.campaign.began)), line.text)
}

// claim picks n masters that no other fault has. It picks all n or none.
func (d *director) claim(n int) (masters []int, unclaim func(), ok bool) {
	for _, i := range d.random.Perm(rig.MasterCount) {
		if len(masters) < n && !d.claimed[d.campaign.Masters[i]] {
			masters = append(masters, i)
		}
	}
	if len(masters) < n {
		return nil, nil, false
	}
	for _, i := range masters {
		d.claimed[d.campaign.Masters[i]] = true
	}
	return masters, func() {
		for _, i := range masters {
			delete(d.claimed, d.campaign.Masters[i])
		}
	}, true
}

// claimProxy picks a proxy that no other fault has. It does not pick the one that clients
// need alive.
func (d *director) claimProxy() (proxy int, unclaim func(), ok bool) {
	proxy = d.random.IntN(constantProxy)
	if d.claimed[d.campaign.proxies[proxy]] {
		return 0, nil, false
	}
	d.claimed[d.campaign.proxies[proxy]] = true
	return proxy, func() { delete(d.claimed, d.campaign.proxies[proxy]) }, true
}

// names returns the masters' names for the log.
func names(masters []int) string {
	text := "masters"
	for _, i := range masters {
		text += fmt.Sprintf(" %d", i+1)
	}
	return text
}

// campaignFaults are all faults.
var campaignFaults = []campaignFault{
	{fault.Forget, forgetMinority},
	{fault.Forget + " all", forgetAll},
	{fault.Flush + " all", flushAll},
	{fault.Pause, pauseMasters},
	{fault.Flush, flushMasters},
	{"aimed amnesia", aimAmnesia},
	{fault.Jump, jumpOneClock},
	{fault.Jump + " together", jumpManyClocks},
	{fault.Refuse, takeRights},
	{"no replicas", withoutReplicas},
	{fault.Slow + " master", slowMaster},
	{fault.Cut, cutSomeLinks},
	{fault.Slow, slowSomeLinks},
	{"reload" + fault.Proxy, reloadProxy},
	{fault.Kill + fault.Proxy, killProxy},
	{fault.Pause + fault.Proxy, pauseProxy},
}

func pauseMasters(d *director) (func(), time.Duration, bool) {
	masters, unclaim, ok := d.claim(1 + d.random.IntN(rig.MasterCount/2+1))
	if !ok {
		return nil, 0, false
	}
	lasts := rig.Between(d.random, 50*time.Millisecond, longestLease+time.Second)
	d.note("SIGSTOP of %s for %s", names(masters), lasts)
	for _, i := range masters {
		d.campaign.Masters[i].Pause()
	}
	return func() {
		for _, i := range masters {
			d.campaign.Masters[i].Resume()
		}
		unclaim()
	}, lasts, true
}

func cutSomeLinks(d *director) (func(), time.Duration, bool) {
	var cut []*rig.Link
	for p, links := range d.campaign.links {
		for i, link := range links {
			if d.random.IntN(4) == 0 && !d.claimed[link] {
				d.note("link from proxy %d to master %d is cut", p+1, i+1)
				d.claimed[link] = true
				cut = append(cut, link)
				link.SetDown(true)
			}
		}
	}
	again := d.random.IntN(2) == 0
	return func() {
		for _, link := range cut {
			link.SetDown(false)
			if again {
				link.Cut()
			}
			delete(d.claimed, link)
		}
	}, rig.Between(d.random, 0, 300*time.Millisecond), len(cut) > 0
}

func slowSomeLinks(d *director) (func(), time.Duration, bool) {
	var slow []*rig.Link
	for p, links := range d.campaign.links {
		for i, link := range links {
			if d.random.IntN(4) == 0 && !d.claimed[link] {
				by := rig.Between(d.random, 5*time.Millisecond, 400*time.Millisecond)
				d.note("link from master %d to proxy %d is slow by %s", i+1, p+1, by)
				d.claimed[link] = true
				slow = append(slow, link)
				link.Delay(by)
			}
		}
	}
	return func() {
		for _, link := range slow {
			link.Delay(0)
			delete(d.claimed, link)
		}
	}, rig.Between(d.random, 200*time.Millisecond, 2*time.Second), len(slow) > 0
}

func killProxy(d *director) (func(), time.Duration, bool) {
	proxy, unclaim, ok := d.claimProxy()
	if !ok {
		return nil, 0, false
	}
	d.note("kill -9 of proxy %d", proxy+1)
	d.campaign.proxies[proxy].Proc.Kill()
	return func() {
		d.campaign.proxies[proxy].Start(d.campaign.t)
		unclaim()
	}, rig.Between(d.random, 0, 500*time.Millisecond), true
}

func pauseProxy(d *director) (func(), time.Duration, bool) {
	proxy, unclaim, ok := d.claimProxy()
	if !ok {
		return nil, 0, false
	}
	lasts := rig.Between(d.random, 50*time.Millisecond, longestLease+time.Second)
	d.note("SIGSTOP of proxy %d for %s", proxy+1, lasts)
	d.campaign.proxies[proxy].Proc.Signal(syscall.SIGSTOP)
	return func() {
		d.campaign.proxies[proxy].Proc.Signal(syscall.SIGCONT)
		unclaim()
	}, lasts, true
}

// reloadProxy changes the retry delay, which a reload may do while locks are held.
func reloadProxy(d *director) (func(), time.Duration, bool) {
	proxy := d.random.IntN(campaignProxies)
	// A proxy that has just started may not handle signals yet. SIGHUP would end it.
	if d.claimed[d.campaign.proxies[proxy]] || !d.campaign.proxies[proxy].Lives() {
		return nil, 0, false
	}
	options := &d.campaign.options[proxy]
	options.RetryDelay = rig.Between(d.random, 5*time.Millisecond, 50*time.Millisecond)
	d.note("SIGHUP to proxy %d, retry delay %s", proxy+1, options.RetryDelay)
	d.campaign.proxies[proxy].Configure(d.campaign.t, *options)
	d.campaign.proxies[proxy].Proc.Signal(syscall.SIGHUP)
	return nil, 0, true
}

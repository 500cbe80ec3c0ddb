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
	{"resize", resize},
	{"failover", failOver},
	{fault.Slow + " master", slowMaster},
	{fault.Mute, muteSomeLinks},
	{fault.Cut, cutSomeLinks},
	{fault.Slow, slowSomeLinks},
	{"reload" + fault.Proxy, reloadProxy},
	{fault.Kill + fault.Proxy, killProxy},
	{fault.Pause + fault.Proxy, pauseProxy},
}

// onMasters makes a fault of what happens to some masters, most at most. begin says what it does.
func onMasters(most int, least, longest time.Duration, begin func(d *director, masters []int) string, end func(d *director, master int)) func(*director) (func(), time.Duration, bool) {
	return func(d *director) (func(), time.Duration, bool) {
		masters, unclaim, ok := d.claim(1 + d.random.IntN(most))
		if !ok {
			return nil, 0, false
		}
		d.note("%s: %s", names(masters), begin(d, masters))
		return func() {
			for _, i := range masters {
				end(d, i)
			}
			unclaim()
		}, rig.Between(d.random, least, longest), true
	}
}

var pauseMasters = onMasters(rig.MasterCount/2+1, 50*time.Millisecond, longestLease+time.Second,
	func(d *director, masters []int) string {
		for _, i := range masters {
			d.campaign.Masters[i].Pause()
		}
		return "SIGSTOP"
	},
	func(d *director, master int) { d.campaign.Masters[master].Resume() })

// onLinks makes a fault of what happens to one of four links. begin says what it does.
func onLinks(least, longest time.Duration, begin func(d *director, link *rig.Link) string, end func(d *director, link *rig.Link)) func(*director) (func(), time.Duration, bool) {
	return func(d *director) (func(), time.Duration, bool) {
		var struck []*rig.Link
		for p, links := range d.campaign.links {
			for i, link := range links {
				if d.random.IntN(4) == 0 && !d.claimed[link] {
					d.claimed[link] = true
					struck = append(struck, link)
					d.note("link of proxy %d and master %d %s", p+1, i+1, begin(d, link))
				}
			}
		}
		return func() {
			for _, link := range struck {
				end(d, link)
				delete(d.claimed, link)
			}
		}, rig.Between(d.random, least, longest), len(struck) > 0
	}
}

var cutSomeLinks = onLinks(0, 300*time.Millisecond,
	func(_ *director, link *rig.Link) string {
		link.SetDown(true)
		return "is cut"
	},
	func(d *director, link *rig.Link) {
		if link.SetDown(false); d.random.IntN(2) == 0 {
			link.Cut()
		}
	})

// muteSomeLinks loses all bytes of some links, in one direction or in both, and nobody is told of an end.
var muteSomeLinks = onLinks(0, longestLease,
	func(d *director, link *rig.Link) string {
		how := d.random.IntN(3)
		link.Mute(how != 2, how != 1)
		return "loses " + []string{"all", "questions", "answers"}[how]
	},
	func(_ *director, link *rig.Link) { link.Mute(false, false) })

var slowSomeLinks = onLinks(200*time.Millisecond, 2*time.Second,
	func(d *director, link *rig.Link) string {
		by := rig.Between(d.random, 5*time.Millisecond, 400*time.Millisecond)
		link.Delay(by)
		return fmt.Sprint("is slow by ", by)
	},
	func(_ *director, link *rig.Link) { link.Delay(0) })

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

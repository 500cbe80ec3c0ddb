package integration

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"
)

// A campaignFault is something that goes wrong for a while.
type campaignFault struct {
	name string
	// strike begins it and returns how it ends and after what time, or false if
	// it cannot strike now: what it needs is the prey of another fault.
	strike func(d *director) (end func(), lasts time.Duration, ok bool)
}

// A director lets faults strike, several at a time, and in the end ends them
// all. One goroutine does it all.
type director struct {
	campaign *campaign
	random   *rand.Rand
	deck     []campaignFault
	// grantsBetween is how many locks are taken between two faults, about.
	grantsBetween int64

	drawn   []campaignFault // what is left of the shuffled deck
	active  []activeFault
	claimed map[any]bool // masters, proxies and links that a fault has
	struck  map[string]int
	log     []logLine
	jumps   []time.Time
}

// A logLine is what the director did, or a proxy said.
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

// run lets faults strike until enough is true.
func (d *director) run(enough func() bool) {
	d.claimed, d.struck = map[any]bool{}, map[string]int{}
	defer d.endAll()
	for !enough() {
		// Masters in quarantine grant nothing, and so nothing can be broken then.
		if calm := d.campaign.grants() + 1 + d.random.Int64N(2*d.grantsBetween); d.random.IntN(3) > 0 {
			for until := time.Now().Add(mostCalm); d.campaign.grants() < calm && time.Now().Before(until) && !enough(); {
				d.rest(0)
			}
		}
		if len(d.active) < mostFaultsAtOnce {
			d.draw()
		}
		d.rest(between(d.random, 0, faultPace))
	}
}

// rest lets time go by and ends what is due.
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

// draw lets the next fault of the deck strike. Each strikes once before any
// strikes again.
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
	d.campaign.t.Log(stamp(line.at.Sub(d.campaign.began)), line.text)
}

// claim picks n masters that no other fault has, or none at all.
func (d *director) claim(n int) (masters []int, unclaim func(), ok bool) {
	for _, i := range d.random.Perm(masterCount) {
		if len(masters) < n && !d.claimed[d.campaign.masters[i]] {
			masters = append(masters, i)
		}
	}
	if len(masters) < n {
		return nil, nil, false
	}
	for _, i := range masters {
		d.claimed[d.campaign.masters[i]] = true
	}
	return masters, func() {
		for _, i := range masters {
			delete(d.claimed, d.campaign.masters[i])
		}
	}, true
}

// claimProxy picks a proxy that no other fault has and that nobody relies on
// to live.
func (d *director) claimProxy() (proxy int, unclaim func(), ok bool) {
	proxy = d.random.IntN(constantProxy)
	if d.claimed[d.campaign.proxies[proxy]] {
		return 0, nil, false
	}
	d.claimed[d.campaign.proxies[proxy]] = true
	return proxy, func() { delete(d.claimed, d.campaign.proxies[proxy]) }, true
}

// names are the masters as logs call them.
func names(masters []int) string {
	text := "masters"
	for _, i := range masters {
		text += fmt.Sprintf(" %d", i+1)
	}
	return text
}

// campaignFaults are all of them.
var campaignFaults = []campaignFault{
	{"kill -9", killMinority},
	{"kill all", killAll},
	{"flush all", flushAll},
	{"stop masters", stopMasters},
	{"flush", flushMasters},
	{"aimed amnesia", aimAmnesia},
	{"clock jump", jumpOneClock},
	{"clocks jump together", jumpManyClocks},
	{"rights", takeRights},
	{"no replicas", withoutReplicas},
	{"far master", farMaster},
	{"cut links", cutSomeLinks},
	{"slow links", slowSomeLinks},
	{"reload", reloadProxy},
	{"kill proxy", killProxy},
	{"stop proxy", stopProxy},
}

func stopMasters(d *director) (func(), time.Duration, bool) {
	masters, unclaim, ok := d.claim(1 + d.random.IntN(masterCount/2+1))
	if !ok {
		return nil, 0, false
	}
	lasts := between(d.random, 50*time.Millisecond, longestLease+time.Second)
	d.note("SIGSTOP of %s for %s", names(masters), lasts)
	for _, i := range masters {
		d.campaign.masters[i].pause()
	}
	return func() {
		for _, i := range masters {
			d.campaign.masters[i].resume()
		}
		unclaim()
	}, lasts, true
}

func cutSomeLinks(d *director) (func(), time.Duration, bool) {
	var cut []*slowLink
	for p, links := range d.campaign.links {
		for i, link := range links {
			if d.random.IntN(4) == 0 && !d.claimed[link] {
				d.note("link from proxy %d to master %d is cut", p+1, i+1)
				d.claimed[link] = true
				cut = append(cut, link)
				link.setDown(true)
			}
		}
	}
	again := d.random.IntN(2) == 0
	return func() {
		for _, link := range cut {
			link.setDown(false)
			if again {
				link.cut()
			}
			delete(d.claimed, link)
		}
	}, between(d.random, 0, 300*time.Millisecond), len(cut) > 0
}

func slowSomeLinks(d *director) (func(), time.Duration, bool) {
	var slow []*slowLink
	for p, links := range d.campaign.links {
		for i, link := range links {
			if d.random.IntN(4) == 0 && !d.claimed[link] {
				by := between(d.random, 5*time.Millisecond, 400*time.Millisecond)
				d.note("link from master %d to proxy %d is slow by %s", i+1, p+1, by)
				d.claimed[link] = true
				slow = append(slow, link)
				link.delay(by)
			}
		}
	}
	return func() {
		for _, link := range slow {
			link.delay(0)
			delete(d.claimed, link)
		}
	}, between(d.random, 200*time.Millisecond, 2*time.Second), len(slow) > 0
}

func killProxy(d *director) (func(), time.Duration, bool) {
	proxy, unclaim, ok := d.claimProxy()
	if !ok {
		return nil, 0, false
	}
	d.note("kill -9 of proxy %d", proxy+1)
	d.campaign.proxies[proxy].proc.Kill()
	return func() {
		d.campaign.proxies[proxy].start(d.campaign.t)
		unclaim()
	}, between(d.random, 0, 500*time.Millisecond), true
}

func stopProxy(d *director) (func(), time.Duration, bool) {
	proxy, unclaim, ok := d.claimProxy()
	if !ok {
		return nil, 0, false
	}
	lasts := between(d.random, 50*time.Millisecond, longestLease+time.Second)
	d.note("SIGSTOP of proxy %d for %s", proxy+1, lasts)
	d.campaign.proxies[proxy].proc.Signal(syscall.SIGSTOP)
	return func() {
		d.campaign.proxies[proxy].proc.Signal(syscall.SIGCONT)
		unclaim()
	}, lasts, true
}

// reloadProxy changes the retry delay, which is allowed while locks are held.
func reloadProxy(d *director) (func(), time.Duration, bool) {
	proxy := d.random.IntN(campaignProxies)
	// One that has just been started may not listen for signals yet, and would end.
	if d.claimed[d.campaign.proxies[proxy]] || !d.campaign.proxies[proxy].lives() {
		return nil, 0, false
	}
	options := &d.campaign.options[proxy]
	options.retryDelay = between(d.random, 5*time.Millisecond, 50*time.Millisecond)
	d.note("SIGHUP to proxy %d, retry delay %s", proxy+1, options.retryDelay)
	d.campaign.proxies[proxy].configure(d.campaign.t, *options)
	d.campaign.proxies[proxy].proc.Signal(syscall.SIGHUP)
	return nil, 0, true
}

package integration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestCampaign lets clients of every habit lock through three proxies while
// masters, proxies, links and clocks go wrong in every way that the suite
// knows, amnesia of all masters at once included, and requires that no two of
// them ever held a lock at the same time.
//
// CAMPAIGN_TIME (30s if not given) says how long, or until every fault has
// struck if that takes longer; CAMPAIGN_SEED which faults strike in which order.
// Scheduling is the machine's, so a seed repeats the faults and not the run.
func TestCampaign(t *testing.T) {
	length, err := time.ParseDuration(cmp.Or(os.Getenv("CAMPAIGN_TIME"), "30s"))
	if err != nil {
		t.Fatalf("CAMPAIGN_TIME: %v", err)
	}
	seed := campaignSeed(t)
	c := startCampaign(t, proxyBinary)
	d := &director{campaign: c, random: rand.New(rand.NewPCG(seed, 0)), deck: campaignFaults}
	over := time.Now().Add(length)
	result := c.run(d, func() bool { return time.Now().After(over) && len(d.struck) == len(d.deck) || c.breached() })
	for _, w := range result.wrong[:min(len(result.wrong), 10)] {
		t.Errorf("%s\nlast faults:\n\t%s", w, strings.Join(result.lastFaults, "\n\t"))
	}
	if t.Failed() {
		t.Logf("the same faults again: CAMPAIGN_TIME=%s CAMPAIGN_SEED=%d go test -run '^TestCampaign$' ./integration", length, seed)
		return
	}
	for _, key := range sortedKeys(c.registers) {
		if c.registers[key].writes == 0 {
			t.Errorf("nobody ever held %s", key)
		}
	}
	c.goesOn(t)
}

func campaignSeed(t testing.TB) uint64 {
	t.Helper()
	text := os.Getenv("CAMPAIGN_SEED")
	if text == "" {
		return uint64(time.Now().UnixNano())
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("CAMPAIGN_SEED: %v", err)
	}
	return seed
}

// A campaign is masters with clocks that can jump, proxies, a link from each
// proxy to each master, and clients.
type campaign struct {
	*cluster
	t         *testing.T
	proxies   []*proxyProcess
	options   []proxyOptions
	links     [][]*slowLink // of each proxy, to each master
	clients   []*campaignClient
	registers map[string]*register // by key
	began     time.Time
	// forgotAt is when all masters had been killed together.
	forgotAt []time.Duration
}

const (
	campaignProxies      = 3
	campaignClients      = 14
	campaignRestartDelay = 2 * time.Second
)

func startCampaign(t *testing.T, binary string) *campaign {
	t.Helper()
	redis.SetLogger(silence{}) // connections that cannot be had are the point here
	c := &campaign{cluster: &cluster{upstream: startRedis(t, "upstream")}, t: t, registers: map[string]*register{}}
	for i := range masterCount {
		master := newRedis(t, fmt.Sprintf("master%d", i+1))
		master.clock = newJumpingClock(t)
		master.start(t)
		c.masters = append(c.masters, master)
	}
	for range campaignProxies {
		options := proxyOptions{
			binary: binary, upstream: c.upstream.url(), logLevel: "info",
			masterTimeout: 200 * time.Millisecond, restartDelay: campaignRestartDelay, notNew: true,
		}
		var links []*slowLink
		for _, master := range c.masters {
			link := startSlowLink(t, master.addr())
			links = append(links, link)
			options.masters = append(options.masters, "redis://"+link.addr())
		}
		c.links, c.options = append(c.links, links), append(c.options, options)
		c.proxies = append(c.proxies, newProxy(t, options))
	}
	for _, p := range c.proxies {
		waitFor(t, "proxy is ready", p.ready)
	}
	for _, style := range lockStyles {
		c.registers[style.key] = &register{key: style.key}
	}
	return c
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// campaignResult is what a campaign came to.
type campaignResult struct {
	wrong      []string
	lastFaults []string
}

// run lets clients lock and faults strike until that is enough, and judges.
func (c *campaign) run(d *director, enough func() bool) campaignResult {
	ctx, stop := context.WithCancel(c.t.Context())
	defer stop()
	c.began = time.Now()
	var connections []*redis.Client
	for _, p := range c.proxies {
		client := redis.NewClient(&redis.Options{
			Addr: p.addr(), MaxRetries: -1, ContextTimeoutEnabled: true, PoolSize: campaignClients, DialerRetries: 1,
		})
		defer client.Close()
		connections = append(connections, client)
	}
	var wg sync.WaitGroup
	for i := range campaignClients {
		style := lockStyles[i%len(lockStyles)]
		client := &campaignClient{
			id: i, style: style, proxies: connections, register: c.registers[style.key], began: c.began,
			random: rand.New(rand.NewPCG(d.random.Uint64(), uint64(i))),
		}
		c.clients = append(c.clients, client)
		wg.Go(func() { client.run(ctx) })
	}
	d.run(enough)
	stop()
	wg.Wait()
	result := campaignResult{lastFaults: d.log[max(0, len(d.log)-12):]}
	result.wrong = c.judge()
	c.report(d, len(result.wrong))
	return result
}

// judge returns every violation: what the registers saw, and what the history
// shows.
func (c *campaign) judge() (wrong []string) {
	for _, key := range sortedKeys(c.registers) {
		wrong = append(wrong, c.registers[key].breaches...)
	}
	calls := c.history()
	wrong = append(wrong, checkHistory(calls)...)
	for _, call := range calls {
		for _, forgot := range c.forgotAt {
			if call.asked == askAcquire && call.answer == yes && call.begin > forgot && call.end < forgot+campaignRestartDelay {
				wrong = append(wrong, fmt.Sprintf("granted %s after all masters had forgotten everything: %s", call.end-forgot, call))
			}
		}
	}
	return wrong
}

func (c *campaign) history() (calls []lockCall) {
	for _, client := range c.clients {
		calls = append(calls, client.calls...)
	}
	return calls
}

// grants counts the acquires that were granted so far.
func (c *campaign) grants() (n int64) {
	for _, client := range c.clients {
		n += client.granted.Load()
	}
	return n
}

// breached tells, while it runs, whether a register has seen a violation.
func (c *campaign) breached() bool {
	for _, r := range c.registers {
		r.mu.Lock()
		n := len(r.breaches)
		r.mu.Unlock()
		if n > 0 {
			return true
		}
	}
	return false
}

// report prints what happened.
func (c *campaign) report(d *director, violations int) {
	answers := map[string]int{}
	styles := map[string]int{}
	cycles := 0
	for _, client := range c.clients {
		for _, call := range client.calls {
			answers[fmt.Sprintf("%s %s", call.asked, call.answer)]++
			switch {
			case call.asked == askAcquire && call.answer == yes:
				styles[client.style.name]++
			case call.asked == askRelease && call.answer == yes:
				cycles++
			}
		}
	}
	writes, fenced := 0, 0
	for _, r := range c.registers {
		writes, fenced = writes+r.writes, fenced+r.fenced
	}
	var faults []string
	total := 0
	for _, name := range sortedKeys(d.struck) {
		faults = append(faults, fmt.Sprintf("%s %d", name, d.struck[name]))
		total += d.struck[name]
	}
	c.t.Logf("%d lock cycles in %s: %v; grants by style %v", cycles, time.Since(c.began).Round(time.Second), answers, styles)
	c.t.Logf("%d faults: %s", total, strings.Join(faults, ", "))
	c.t.Logf("%d writes under a lock, %d of holders that had overstayed were fenced off; %d violations", writes, fenced, violations)
}

// goesOn waits until every lock can be taken again through every proxy: the
// faults have left nothing behind that keeps clients out.
func (c *campaign) goesOn(t *testing.T) {
	t.Helper()
	for i, p := range c.proxies {
		client := p.client(t)
		for _, style := range lockStyles {
			token := fmt.Sprintf("afterwards-%d-%s", i, style.name)
			waitFor(t, "taking "+style.key+" as "+style.name+" does", func() error {
				ok, err := style.acquire(t.Context(), client, style.key, token, patience)
				if err == nil && !ok {
					err = errors.New("it is held")
				}
				return err
			})
			if ok, err := style.release(t.Context(), client, style.key, token); err != nil || !ok {
				t.Fatalf("releasing %s as %s does: %v %v", style.key, style.name, ok, err)
			}
		}
	}
}

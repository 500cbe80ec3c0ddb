package integration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
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
// struck and CAMPAIGN_CYCLES locks were taken and released if that takes longer;
// CAMPAIGN_SEED which faults strike in which order; CAMPAIGN_FAULTS, names with
// commas between them, that only these do; CAMPAIGN_WIDTH how many locks of each
// style there are, each with clients of its own (1 if not given); CAMPAIGN_CALM
// how many locks are taken between two faults, about (8 if not given).
// Scheduling is the machine's, so a seed repeats the faults and not the run.
func TestCampaign(t *testing.T) {
	length, err := time.ParseDuration(cmp.Or(os.Getenv("CAMPAIGN_TIME"), "30s"))
	if err != nil {
		t.Fatalf("CAMPAIGN_TIME: %v", err)
	}
	cycles := campaignNumber(t, "CAMPAIGN_CYCLES", 0)
	seed := campaignSeed(t)
	c := startCampaign(t, proxyBinary)
	d := &director{campaign: c, random: rand.New(rand.NewPCG(seed, 0)), deck: campaignDeck(t), grantsBetween: campaignNumber(t, "CAMPAIGN_CALM", usualCalm)}
	over := time.Now().Add(length)
	wrong := c.run(d, func() bool {
		return time.Now().After(over) && len(d.struck) == len(d.deck) && c.grants() >= cycles || c.breached()
	})
	for _, v := range wrong[:min(len(wrong), 10)] {
		t.Errorf("%s: %s", stamp(v.at.Sub(c.began)), v.what)
	}
	if len(wrong) > 0 {
		c.explain(d, wrong[0].at)
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

func campaignDeck(t testing.TB) []campaignFault {
	t.Helper()
	wanted := os.Getenv("CAMPAIGN_FAULTS")
	if wanted == "" {
		return campaignFaults
	}
	var deck []campaignFault
	for _, name := range strings.Split(wanted, ",") {
		i := slices.IndexFunc(campaignFaults, func(f campaignFault) bool { return f.name == name })
		if i < 0 {
			t.Fatalf("CAMPAIGN_FAULTS: there is no fault %q", name)
		}
		deck = append(deck, campaignFaults[i])
	}
	return deck
}

func campaignNumber(t testing.TB, name string, usual int64) int64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		t.Fatalf("%s: %q is not a number", name, text)
	}
	return n
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
	styles    []lockStyle
	proxies   []*proxyProcess
	options   []proxyOptions
	links     [][]*slowLink // of each proxy, to each master
	clients   []*campaignClient
	registers map[string]*register      // by key
	answers   map[string]*writerAnswers // by key
	older     olderCopy
	began     time.Time
	// forgotAt is when so many masters had forgotten everything that no quorum
	// remembered anything.
	forgotAt []time.Duration
}

const (
	campaignProxies      = 3
	campaignClients      = 14
	campaignRestartDelay = 3 * time.Second
	// campaignMaxQuarantine is for how long masters do not vote where nobody can
	// tell the longest lease any more, as when masters are cut off from proxies
	// that have just been started: far beyond all leases, and not all of patience.
	campaignMaxQuarantine = 5 * campaignRestartDelay
)

func startCampaign(t *testing.T, binary string) *campaign {
	t.Helper()
	redis.SetLogger(silence{}) // connections that cannot be had are the point here
	c := &campaign{cluster: &cluster{upstream: startRedis(t, "upstream")}, t: t, registers: map[string]*register{}, answers: map[string]*writerAnswers{}}
	for i := range masterCount {
		master := newRedis(t, fmt.Sprintf("master%d", i+1), "--repl-diskless-sync-delay", "0")
		master.clock = newJumpingClock(t)
		master.start(t)
		c.masters = append(c.masters, master)
	}
	for range campaignProxies {
		options := proxyOptions{
			binary: binary, upstream: c.upstream.url(), logLevel: "info",
			masterTimeout: 200 * time.Millisecond, restartDelay: campaignRestartDelay, maxQuarantine: campaignMaxQuarantine, notNew: true,
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
	c.styles = wideStyles(t)
	for _, style := range c.styles {
		c.registers[style.key] = &register{key: style.key}
	}
	for _, w := range writers {
		c.answers[w.key] = &writerAnswers{errors: map[string]int{}}
	}
	return c
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// run lets clients lock and faults strike until that is enough, and judges.
func (c *campaign) run(d *director, enough func() bool) []violation {
	ctx, stop := context.WithCancel(c.t.Context())
	defer stop()
	c.began = time.Now()
	connections := map[int][]*redis.Client{}
	for _, db := range []int{0, otherDatabase} {
		for _, p := range c.proxies {
			client := redis.NewClient(&redis.Options{
				Addr: p.addr(), DB: db, MaxRetries: -1, ContextTimeoutEnabled: true, PoolSize: len(c.styles) * campaignClients, DialerRetries: 1,
			})
			defer client.Close()
			connections[db] = append(connections[db], client)
		}
	}
	var wg sync.WaitGroup
	for i := range campaignClients * len(c.styles) / len(lockStyles) {
		style := c.styles[i%len(c.styles)]
		client := &campaignClient{
			id: i, style: style, proxies: connections[style.db], register: c.registers[style.key], began: c.began, errors: map[string]int{},
			random: rand.New(rand.NewPCG(d.random.Uint64(), uint64(i))),
		}
		c.clients = append(c.clients, client)
		wg.Go(func() { client.run(ctx) })
	}
	for i := range writersOfEach * len(writers) {
		w := campaignWriter{
			writer: writers[i%len(writers)], proxies: connections[0], answers: c.answers[writers[i%len(writers)].key],
			random: rand.New(rand.NewPCG(d.random.Uint64(), uint64(i))),
		}
		wg.Go(func() { w.run(ctx) })
	}
	d.run(enough)
	stop()
	wg.Wait()
	wrong := c.judge()
	c.report(d, len(wrong))
	return wrong
}

// explain prints what struck and what the proxies said shortly before a
// violation.
func (c *campaign) explain(d *director, at time.Time) {
	shortly := func(then time.Time) bool { return then.Before(at) && then.After(at.Add(-2*campaignRestartDelay)) }
	lines := slices.Clone(d.log)
	for i, p := range c.proxies {
		for line := range strings.Lines(p.proc.Log.String()) {
			word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			if said, err := time.Parse("time="+time.RFC3339Nano, word); err == nil {
				lines = append(lines, logLine{said, fmt.Sprintf("proxy %d: %s", i+1, rest)})
			}
		}
	}
	slices.SortStableFunc(lines, func(a, b logLine) int { return a.at.Compare(b.at) })
	for _, l := range lines {
		if shortly(l.at) {
			c.t.Log(stamp(l.at.Sub(c.began)), l.text)
		}
	}
}

// judge returns every violation: what the registers saw, what the history
// shows, and grants by masters that had all just forgotten everything.
func (c *campaign) judge() (wrong []violation) {
	for _, key := range sortedKeys(c.registers) {
		wrong = append(wrong, c.registers[key].breaches...)
	}
	calls := c.history()
	wrong = append(wrong, checkHistory(c.began, calls)...)
	for _, forgot := range c.forgotAt {
		early := slices.IndexFunc(calls, func(call lockCall) bool {
			return call.asked == askAcquire && call.answer == yes && call.begin > forgot && call.end < forgot+campaignRestartDelay
		})
		if early >= 0 {
			wrong = append(wrong, violation{c.began.Add(calls[early].end),
				fmt.Sprintf("granted %s after all masters had forgotten everything: %s", calls[early].end-forgot, calls[early])})
		}
	}
	slices.SortStableFunc(wrong, func(a, b violation) int { return a.at.Compare(b.at) })
	return wrong
}

// history is what all clients noted, in the order in which they asked.
func (c *campaign) history() (calls []lockCall) {
	for _, client := range c.clients {
		calls = append(calls, client.calls...)
	}
	slices.SortStableFunc(calls, func(a, b lockCall) int { return cmp.Compare(a.begin, b.begin) })
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
	styles, errors := map[string]int{}, map[string]int{}
	cycles := 0
	for _, client := range c.clients {
		for text, n := range client.errors {
			errors[text] += n
		}
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
	for _, text := range sortedKeys(errors) {
		c.t.Logf("%d times: %s", errors[text], text)
	}
	for _, key := range sortedKeys(c.answers) {
		c.t.Logf("%s: %d commands of writers, of which failed %v", key, c.answers[key].all, c.answers[key].errors)
	}
	c.t.Logf("%d writes under a lock, %d of holders that had overstayed were fenced off; %d violations", writes, fenced, violations)
}

// goesOn waits until every proxy has its quorum back and every lock can be taken
// again through every proxy: the faults have left nothing behind that keeps
// clients out.
func (c *campaign) goesOn(t *testing.T) {
	t.Helper()
	healthy := time.Now()
	for i, p := range c.proxies {
		waitFor(t, fmt.Sprintf("proxy %d has its quorum back", i+1), p.ready)
	}
	votes := time.Now()
	var wg sync.WaitGroup
	for _, w := range writers {
		wg.Go(func() { c.ofUse(t, w.key) })
	}
	byKey := map[string][]lockStyle{}
	for _, style := range c.styles {
		byKey[style.key] = append(byKey[style.key], style)
	}
	for _, styles := range byKey {
		wg.Go(func() { c.canBeTaken(t, styles) })
	}
	wg.Wait()
	t.Logf("%s after the last fault all proxies had their quorum, %s later every key was of use",
		votes.Sub(healthy).Round(time.Millisecond), time.Since(votes).Round(time.Millisecond))
}

// canBeTaken waits until the lock of these styles can be taken and released as
// each of them does, through every proxy.
func (c *campaign) canBeTaken(t *testing.T, styles []lockStyle) {
	for i, p := range c.proxies {
		for _, style := range styles {
			client := redis.NewClient(&redis.Options{Addr: p.addr(), DB: style.db, MaxRetries: -1})
			defer client.Close()
			token := fmt.Sprintf("afterwards-%d-%s", i, style.name)
			err := eventually(func() error {
				ok, err := style.acquire(t.Context(), client, style.key, token, patience)
				if err == nil && !ok {
					err = errors.New("it is held")
				}
				return err
			})
			if err != nil {
				t.Errorf("taking %s as %s does through proxy %d: %v", style.key, style.name, i+1, err)
				return
			}
			if ok, err := style.release(t.Context(), client, style.key, token); err != nil || !ok {
				t.Errorf("releasing %s as %s does through proxy %d: %v %v", style.key, style.name, i+1, ok, err)
				return
			}
		}
	}
}

package campaign

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/integration/history"
	"redlock-proxy/integration/layer"
	"redlock-proxy/integration/rig"

	"github.com/redis/go-redis/v9"
)

// TestCampaign lets clients of every habit lock through three proxies. Meanwhile masters,
// proxies, links and clocks fail in every way that the suite knows. One fault makes all
// masters forget at once. No two clients may ever hold a lock at the same time.
//
// These variables set the run:
//
//	CAMPAIGN_TIME    its length, 30s if not given. It goes on until every fault has struck
//	                 and CAMPAIGN_CYCLES locks were taken and released
//	CAMPAIGN_FAULTS  names of faults, with commas between them: only these strike
//	CAMPAIGN_WIDTH   the number of locks of each style, each with its own clients (1)
//	CAMPAIGN_CALM    the approximate number of locks taken between two faults (8)
//
// The seed (layer.Seed) chooses the order of the faults. The machine schedules the clients, so
// a seed repeats the faults and not the run.
func TestCampaign(t *testing.T) {
	length, err := time.ParseDuration(cmp.Or(os.Getenv("CAMPAIGN_TIME"), "30s"))
	if err != nil {
		t.Fatalf("CAMPAIGN_TIME: %v", err)
	}
	cycles := campaignNumber(t, "CAMPAIGN_CYCLES", 0)
	seed := layer.Seed(t, "CAMPAIGN_TIME", "CAMPAIGN_CYCLES", "CAMPAIGN_FAULTS", "CAMPAIGN_WIDTH", "CAMPAIGN_CALM")
	c := startCampaign(t, rig.ProxyBinary)
	d := &director{campaign: c, random: rand.New(rand.NewPCG(seed, 0)), deck: campaignDeck(t), grantsBetween: campaignNumber(t, "CAMPAIGN_CALM", usualCalm)}
	over := time.Now().Add(length)
	wrong := c.run(d, func() bool {
		return time.Now().After(over) && len(d.struck) == len(d.deck) && c.grants() >= cycles || c.breached()
	})
	for _, v := range wrong[:min(len(wrong), 10)] {
		t.Errorf("%s: %s", history.Stamp(v.At.Sub(c.began)), v.What)
	}
	if len(wrong) > 0 {
		c.explain(d, wrong[0].At)
	}
	if t.Failed() {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(c.registers)) {
		if c.registers[key].Writes == 0 {
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

// A campaign is masters with clocks that can jump, proxies, a link from each proxy to each
// master, and clients.
type campaign struct {
	*rig.Cluster
	t         *testing.T
	styles    []lockStyle
	proxies   []*rig.Proxy
	options   []rig.Options
	links     [][]*rig.Link // of each proxy, to each master
	clients   []*campaignClient
	registers map[string]*history.Register // by key
	answers   map[string]*writerAnswers    // by key
	older     olderCopy
	began     time.Time
	// forgotAt has the moments at which so many masters had forgotten everything that no
	// quorum remembered anything.
	forgotAt []time.Duration
}

const (
	campaignProxies      = 3
	campaignClients      = 14
	campaignHealers      = 2 // proxies that write to masters what they lack
	campaignRestartDelay = 3 * time.Second
	// campaignMaxQuarantine is the quarantine of masters if nobody knows the longest lease any
	// more, for example if masters are cut off from newly started proxies. It is far longer
	// than all leases and shorter than Patience.
	campaignMaxQuarantine = 5 * campaignRestartDelay
)

func startCampaign(t *testing.T, binary string) *campaign {
	t.Helper()
	redis.SetLogger(rig.Silence{}) // failed connections are expected here
	c := &campaign{Cluster: &rig.Cluster{Upstream: rig.StartServer(t, "upstream")}, t: t, registers: map[string]*history.Register{}, answers: map[string]*writerAnswers{}}
	for i := range rig.MasterCount {
		master := rig.NewServer(t, fmt.Sprintf("master%d", i+1), "--repl-diskless-sync-delay", "0")
		master.Clock = rig.NewClock(t)
		master.Start(t)
		c.Masters = append(c.Masters, master)
	}
	for i := range campaignProxies {
		options := rig.Options{
			Binary: binary, Upstream: c.Upstream.URL(), LogLevel: "info",
			MasterTimeout: 200 * time.Millisecond, RestartDelay: campaignRestartDelay, MaxQuarantine: campaignMaxQuarantine, NotNew: true,
		}
		if i < campaignHealers {
			options.More = "heal: {every: 1s, rate: 10000, size: 1mb}\n"
		}
		var links []*rig.Link
		for _, master := range c.Masters {
			link := rig.StartLink(t, master.Addr())
			links = append(links, link)
			options.Masters = append(options.Masters, "redis://"+link.Addr())
		}
		c.links, c.options = append(c.links, links), append(c.options, options)
		c.proxies = append(c.proxies, rig.NewProxy(t, options))
	}
	for _, p := range c.proxies {
		rig.WaitFor(t, "proxy is ready", p.Ready)
	}
	c.styles = wideStyles(t)
	for _, style := range c.styles {
		c.registers[style.key] = &history.Register{Key: style.key}
	}
	for _, w := range writers {
		c.answers[w.key] = &writerAnswers{errors: map[string]int{}}
	}
	return c
}

// run lets clients lock and faults strike until enough has happened, and judges.
func (c *campaign) run(d *director, enough func() bool) []history.Violation {
	ctx, stop := context.WithCancel(c.t.Context())
	defer stop()
	c.began = time.Now()
	connections := map[int][]*redis.Client{}
	for _, db := range []int{0, otherDatabase} {
		for _, p := range c.proxies {
			client := redis.NewClient(&redis.Options{
				Addr: p.Addr(), DB: db, MaxRetries: -1, ContextTimeoutEnabled: true, PoolSize: len(c.styles) * campaignClients, DialerRetries: 1,
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

// explain prints the faults and the proxies' log lines shortly before a violation.
func (c *campaign) explain(d *director, at time.Time) {
	shortly := func(then time.Time) bool { return then.Before(at) && then.After(at.Add(-2*campaignRestartDelay)) }
	lines := slices.Clone(d.log)
	for i, p := range c.proxies {
		for line := range strings.Lines(p.Proc.Log.String()) {
			word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			if said, err := time.Parse("time="+time.RFC3339Nano, word); err == nil {
				lines = append(lines, logLine{said, fmt.Sprintf("proxy %d: %s", i+1, rest)})
			}
		}
	}
	slices.SortStableFunc(lines, func(a, b logLine) int { return a.at.Compare(b.at) })
	for _, l := range lines {
		if shortly(l.at) {
			c.t.Log(history.Stamp(l.at.Sub(c.began)), l.text)
		}
	}
}

// judge returns every violation: those that the registers saw, those in the history, and
// grants by masters that had all just forgotten everything.
func (c *campaign) judge() (wrong []history.Violation) {
	for _, key := range slices.Sorted(maps.Keys(c.registers)) {
		wrong = append(wrong, c.registers[key].Breaches...)
	}
	calls := c.history()
	wrong = append(wrong, history.Check(c.began, calls)...)
	for _, forgot := range c.forgotAt {
		early := slices.IndexFunc(calls, func(call history.Call) bool {
			return call.Asked == history.AskAcquire && call.Answer == history.Yes && call.Begin > forgot && call.End < forgot+campaignRestartDelay
		})
		if early >= 0 {
			wrong = append(wrong, history.Violation{At: c.began.Add(calls[early].End),
				What: fmt.Sprintf("granted %s after all masters had forgotten everything: %s", calls[early].End-forgot, calls[early])})
		}
	}
	slices.SortStableFunc(wrong, func(a, b history.Violation) int { return a.At.Compare(b.At) })
	return wrong
}

// history returns the calls of all clients, in the order in which they began.
func (c *campaign) history() (calls []history.Call) {
	for _, client := range c.clients {
		calls = append(calls, client.calls...)
	}
	slices.SortStableFunc(calls, func(a, b history.Call) int { return cmp.Compare(a.Begin, b.Begin) })
	return calls
}

// grants counts the acquires granted so far.
func (c *campaign) grants() (n int64) {
	for _, client := range c.clients {
		n += client.granted.Load()
	}
	return n
}

// breached tells, during the run, whether a register has seen a violation.
func (c *campaign) breached() bool {
	for _, r := range c.registers {
		r.Mu.Lock()
		n := len(r.Breaches)
		r.Mu.Unlock()
		if n > 0 {
			return true
		}
	}
	return false
}

// report prints a summary of the run.
func (c *campaign) report(d *director, violations int) {
	answers := map[string]int{}
	styles, errors := map[string]int{}, map[string]int{}
	cycles := 0
	for _, client := range c.clients {
		for text, n := range client.errors {
			errors[text] += n
		}
		for _, call := range client.calls {
			answers[fmt.Sprintf("%s %s", call.Asked, call.Answer)]++
			switch {
			case call.Asked == history.AskAcquire && call.Answer == history.Yes:
				styles[client.style.name]++
			case call.Asked == history.AskRelease && call.Answer == history.Yes:
				cycles++
			}
		}
	}
	writes, fenced := 0, 0
	for _, r := range c.registers {
		writes, fenced = writes+r.Writes, fenced+r.Fenced
	}
	var faults []string
	total := 0
	for _, name := range slices.Sorted(maps.Keys(d.struck)) {
		faults = append(faults, fmt.Sprintf("%s %d", name, d.struck[name]))
		total += d.struck[name]
	}
	c.t.Logf("%d lock cycles in %s: %v; grants by style %v", cycles, time.Since(c.began).Round(time.Second), answers, styles)
	c.t.Logf("%d faults: %s", total, strings.Join(faults, ", "))
	for _, text := range slices.Sorted(maps.Keys(errors)) {
		c.t.Logf("%d times: %s", errors[text], text)
	}
	for _, key := range slices.Sorted(maps.Keys(c.answers)) {
		c.t.Logf("%s: %d commands of writers, of which failed %v", key, c.answers[key].all, c.answers[key].errors)
	}
	c.t.Logf("%d writes under a lock, %d of holders that had overstayed were fenced off; %d violations", writes, fenced, violations)
}

// goesOn waits until every proxy has its quorum again and every lock can be taken through
// every proxy. No fault may leave something behind that keeps clients out.
func (c *campaign) goesOn(t *testing.T) {
	t.Helper()
	healthy := time.Now()
	for i, p := range c.proxies {
		rig.WaitFor(t, fmt.Sprintf("proxy %d has its quorum back", i+1), p.Ready)
	}
	votes := time.Now()
	c.emptyOthers(t)
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
	t.Logf("all proxies had their quorum %s after the last fault, and every key was usable %s later",
		votes.Sub(healthy).Round(time.Millisecond), time.Since(votes).Round(time.Millisecond))
}

// emptyOthers does what the handbook asks of the operator. All masters were flushed or came back empty, and a
// minority may be left with another set. Such a master never votes, and a key that the others hold differently may
// wait for it.
func (c *campaign) emptyOthers(t *testing.T) {
	t.Helper()
	var sets []string
	of := map[string]int{}
	for _, master := range c.Masters {
		text, _ := master.Value(t, "redlock-proxy:master")
		_, text, _ = strings.Cut(text, " set=")
		set, _, _ := strings.Cut(text, " ")
		sets = append(sets, set)
		of[set]++
	}
	for i, master := range c.Masters {
		if of[sets[i]] > len(c.Masters)/2 || sets[i] == "" {
			continue
		}
		t.Logf("%s is of another set, so the operator empties it", master.Name)
		if err := master.Direct.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// canBeTaken waits until the lock of these styles can be taken and released in the way of
// each style, through every proxy.
func (c *campaign) canBeTaken(t *testing.T, styles []lockStyle) {
	for i, p := range c.proxies {
		for _, style := range styles {
			client := redis.NewClient(&redis.Options{Addr: p.Addr(), DB: style.db, MaxRetries: -1})
			defer client.Close()
			tries := 0
			err := rig.Eventually(func() error {
				// A try whose answer was lost may have taken the lock. With its token a re-entrant
				// lock would be taken twice. So each try has its own, and the lock soon ends.
				tries++
				token := fmt.Sprintf("afterwards-%d-%s-%d", i, style.name, tries)
				if ok, err := style.acquire(t.Context(), client, style.key, token, rig.Patience/10); err != nil || !ok {
					return fmt.Errorf("taking it: %v %v", ok, err)
				}
				if ok, err := style.release(t.Context(), client, style.key, token); err != nil || !ok {
					return fmt.Errorf("releasing it: %v %v", ok, err)
				}
				return nil
			})
			if err != nil {
				t.Errorf("%s as %s does through proxy %d: %v", style.key, style.name, i+1, err)
				return
			}
		}
	}
}

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
	"redlock-proxy/integration/work"

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
		return time.Now().After(over) && len(d.struck) == len(d.deck) && c.work.Grants() >= cycles || c.work.Breached()
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
	for _, key := range slices.Sorted(maps.Keys(c.work.Registers)) {
		if c.work.Registers[key].Writes == 0 {
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

// wideStyles returns the styles, each for CAMPAIGN_WIDTH locks.
func wideStyles(t testing.TB) (wide []work.Style) {
	t.Helper()
	for i := range campaignNumber(t, "CAMPAIGN_WIDTH", 1) {
		for _, style := range work.Styles {
			if i > 0 {
				style.Key += fmt.Sprintf(":%d", i)
			}
			wide = append(wide, style)
		}
	}
	return wide
}

const (
	// Leases are not longer than restart_delay, for which a master that has forgotten its
	// locks may not vote. Some are nearly as long, and longer than the start of a proxy.
	shortestLease = 500 * time.Millisecond
	longestLease  = 2500 * time.Millisecond
	// answerWait is the longest wait for an answer. It is longer than a ballot and shorter
	// than the pauses of proxies.
	answerWait = time.Second
	// otherDatabase has some of the locks.
	otherDatabase = work.OtherDatabase
)

// A campaign is masters with clocks that can jump, proxies, a link from each proxy to each
// master, and clients.
type campaign struct {
	*rig.Cluster
	t       *testing.T
	proxies []*rig.Proxy
	options []rig.Options
	links   [][]*rig.Link // of each proxy, to each master
	work    *work.Work
	answers map[string]*writerAnswers // by key
	older   olderCopy
	began   time.Time
	// forgotAt has the moments at which so many masters had forgotten everything that no
	// quorum remembered anything.
	forgotAt []time.Duration
}

const (
	campaignProxies      = 3
	campaignClients      = 3                   // of each style
	constantProxy        = campaignProxies - 1 // the proxy of the applications that store a constant
	campaignHealers      = 2                   // proxies that write to masters what they lack
	campaignRestartDelay = 3 * time.Second
	// campaignMaxQuarantine is the quarantine of masters if nobody knows the longest lease any
	// more, for example if masters are cut off from newly started proxies. It is far longer
	// than all leases and shorter than Patience.
	campaignMaxQuarantine = 5 * campaignRestartDelay
)

func startCampaign(t *testing.T, binary string) *campaign {
	t.Helper()
	redis.SetLogger(rig.Silence{}) // failed connections are expected here
	c := &campaign{Cluster: &rig.Cluster{Upstream: rig.StartServer(t, "upstream")}, t: t, answers: map[string]*writerAnswers{}}
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
	for _, w := range writers {
		c.answers[w.key] = &writerAnswers{errors: map[string]int{}}
	}
	return c
}

// run lets clients lock and faults strike until enough has happened, and judges.
func (c *campaign) run(d *director, enough func() bool) []history.Violation {
	ctx, stop := context.WithCancel(c.t.Context())
	defer stop()
	c.work = work.Start(c.t, work.Options{
		At: work.Through(c.proxies...), Styles: wideStyles(c.t), Clients: campaignClients, Roam: true, Careless: true,
		Shortest: shortestLease, Longest: longestLease, Wait: answerWait, Random: d.random,
	})
	c.began = c.work.Began
	var connections []*redis.Client
	for _, p := range c.proxies {
		client := redis.NewClient(&redis.Options{Addr: p.Addr(), MaxRetries: -1, ContextTimeoutEnabled: true, PoolSize: writersOfEach * len(writers), DialerRetries: 1})
		defer client.Close()
		connections = append(connections, client)
	}
	var wg sync.WaitGroup
	for i := range writersOfEach * len(writers) {
		w := campaignWriter{
			writer: writers[i%len(writers)], proxies: connections, answers: c.answers[writers[i%len(writers)].key],
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

// judge returns every violation: those in the work, and grants by masters that had all just forgotten everything.
func (c *campaign) judge() []history.Violation {
	calls, wrong := c.work.Stop()
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
	c.work.Report(c.t, calls)
	return wrong
}

// report prints a summary of the run.
func (c *campaign) report(d *director, violations int) {
	var faults []string
	total := 0
	for _, name := range slices.Sorted(maps.Keys(d.struck)) {
		faults = append(faults, fmt.Sprintf("%s %d", name, d.struck[name]))
		total += d.struck[name]
	}
	c.t.Logf("%d faults: %s", total, strings.Join(faults, ", "))
	for _, key := range slices.Sorted(maps.Keys(c.answers)) {
		c.t.Logf("%s: %d commands of writers, of which failed %v", key, c.answers[key].all, c.answers[key].errors)
	}
	c.t.Logf("%d violations", violations)
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
	byKey := map[string][]work.Style{}
	for _, style := range c.work.Styles {
		byKey[style.Key] = append(byKey[style.Key], style)
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
func (c *campaign) canBeTaken(t *testing.T, styles []work.Style) {
	for i, p := range c.proxies {
		for _, style := range styles {
			client := redis.NewClient(&redis.Options{Addr: p.Addr(), DB: style.DB, MaxRetries: -1})
			defer client.Close()
			tries := 0
			err := rig.Eventually(func() error {
				// A try whose answer was lost may have taken the lock. With its token a re-entrant
				// lock would be taken twice. So each try has its own, and the lock soon ends.
				tries++
				token := fmt.Sprintf("afterwards-%d-%s-%d", i, style.Name, tries)
				if ok, err := style.Acquire(t.Context(), client, style.Key, token, rig.Patience/10); err != nil || !ok {
					return fmt.Errorf("taking it: %v %v", ok, err)
				}
				if ok, err := style.Release(t.Context(), client, style.Key, token); err != nil || !ok {
					return fmt.Errorf("releasing it: %v %v", ok, err)
				}
				return nil
			})
			if err != nil {
				t.Errorf("%s as %s does through proxy %d: %v", style.Key, style.Name, i+1, err)
				return
			}
		}
	}
}

package lease

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/redlock"
)

// TestLeases plays testdata/scripts. Connections are a, b, c. Time passes only with "after". A line is one of
//
//	rule renew 1m release            what the rule of all keys says
//	a takes k VALUE 3s               the masters hold the lock, and a is told so; 0s: without TTL; a value of "-": no string; x*9: xxxxxxxxx
//	a took k VALUE 3s since 1s       a is told so, whatever the masters hold; the command began at 1s
//	a takes 300 locks VALUE 3s       with the keys a-0 to a-299; "each of 50 takes 300 locks ...": so do 50 connections
//	masters hold k VALUE 3s          by somebody else's command
//	masters lose k
//	masters answer no-quorum         to every question; truly: by what they hold; panic; lost-after-an-hour-of-sleep
//	masters take 5ms                 for each answer
//	a ended k won since 1s           a released the lock, or gave it another value; also lost, no-quorum and error
//	a prolonged k 30s won            a gave the lock this TTL; 0s: none
//	a ran created k VALUE 3s         what an examined run did; created-hash: VALUE is the field that names the holder
//	a attempted k VALUE              an examined run without a quorum would have deleted this value
//	a deletes k VALUE by DEL k       a run without a quorum deleted this value on some master; MULTI: in a transaction
//	a leaves / a is closed           the client ends its connection / the proxy does
//	all are busy / all are free      as many questions as may be asked are under way, or none
//	k is renewed                     its renewal is sent just now
//	the keeper closes within 1s
//
// Below stand the questions to the masters and when they were put, who was told of a lost lock, what was logged,
// what the masters hold, the leases, and the counters, where they differ from what was shown last.
func TestLeases(t *testing.T) {
	datatest.Play(t, "testdata/scripts/*.txt", func(t *testing.T, s *datatest.Script) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			defer b.Close(context.Background())
			for event := range s.Events {
				b.do(strings.Fields(event))
				synctest.Wait()
				for _, line := range b.came(t) {
					s.Printf("%s", line)
				}
			}
		})
	})
}

// A bench is a Keeper, its connections, and its masters.
type bench struct {
	*Keeper
	rule    Rule
	masters fakeMasters
	holders map[string]*Holder
	began   time.Time
	log     bytes.Buffer
	said    []saying // since the last event; guarded by the masters' mutex
	shown   map[string]string
}

// A saying is a question to the masters, or a word to a connection.
type saying struct {
	at        time.Duration
	key, text string
}

func newBench(t *testing.T) *bench {
	b := &bench{holders: map[string]*Holder{}, began: time.Now(), shown: map[string]string{}}
	b.masters = fakeMasters{locks: map[string]fakeLock{}, began: b.began, suspend: b.sleepAnHour, asked: func(key, question string) {
		b.said = append(b.said, saying{time.Since(b.began), key, question})
	}}
	untimed := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == "time" || a.Key == "stack" {
			return slog.Attr{}
		}
		return a
	}
	b.Keeper = New(Config{
		Locker: &b.masters, Rule: func(int, []byte) Rule { return b.rule },
		Limits: func() Limits { return limits }, Log: slog.New(slog.NewTextHandler(&b.log, &slog.HandlerOptions{ReplaceAttr: untimed})),
	})
	b.came(t)
	return b
}

// holder returns a connection, which begins with its first line. "nobody" is none.
func (b *bench) holder(name string) *Holder {
	if b.holders[name] == nil && name != "nobody" {
		b.holders[name] = b.NewHolder(func() {
			b.masters.mu.Lock()
			defer b.masters.mu.Unlock()
			b.said = append(b.said, saying{time.Since(b.began), name, name + " is told that it lost a lock"})
		})
	}
	return b.holders[name]
}

// sleepAnHour lets all leases be as old as after an hour in which no goroutine ran.
func (b *bench) sleepAnHour() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.leases {
		l.term.taken, l.term.since = l.term.taken.Add(-time.Hour), l.term.since.Add(-time.Hour)
	}
}

var changes = map[string]redlock.Change{
	"created": redlock.KeyCreated, "created-hash": redlock.KeyCreated, "replaced": redlock.KeyReplaced,
	"prolonged": redlock.KeyProlonged, "reentered": redlock.KeyReentered, "deleted": redlock.KeyDeleted,
}

var outcomes = map[string]redlock.Outcome{
	"won": {Verdict: redlock.Won}, "lost": {Verdict: redlock.Lost}, "no-quorum": {Verdict: redlock.NoQuorum},
	"error": {Verdict: redlock.Won, Err: "WRONGTYPE"},
}

// do does what a line says.
func (b *bench) do(w []string) {
	since := time.Now()
	if n := len(w) - 2; n > 0 && w[n] == "since" {
		since, w = b.began.Add(datatest.Duration(w[n+1])), w[:n]
	}
	switch verb := w[1]; {
	case w[0] == "after":
		time.Sleep(datatest.Duration(w[1]))
	case w[0] == "rule":
		b.mu.Lock()
		b.rule = Rule{Release: slices.Contains(w, "release")}
		if verb == "renew" {
			b.rule.Renew = datatest.Duration(w[2])
		}
		b.mu.Unlock()
	case w[0] == "masters":
		b.tellMasters(w)
	case w[0] == "all":
		for range maxAsking {
			if w[2] == "busy" {
				b.asking <- struct{}{}
			} else {
				<-b.asking
			}
		}
	case verb == "is" && w[2] == "renewed":
		b.asking <- struct{}{}
		b.renew(b.leases[place{0, w[0]}])
	case w[0] == "the":
		ctx, cancel := context.WithTimeout(context.Background(), datatest.Duration(w[4]))
		defer cancel()
		b.Close(ctx)
		b.masters.asked("", "the keeper has closed")
	case verb == "leaves" || verb == "is":
		b.holder(w[0]).Close(verb == "leaves")
	case verb == "takes" && w[3] == "locks":
		n, _ := strconv.Atoi(w[2])
		for i := range n {
			b.tell([]string{w[0], verb, fmt.Sprint(w[0], "-", i), w[4], w[5]}, since)
		}
	case w[0] == "each":
		n, _ := strconv.Atoi(w[2])
		for i := range n {
			b.do(append([]string{fmt.Sprint("connection", i)}, w[3:]...))
		}
	default:
		b.tell(w, since)
	}
}

func (b *bench) tellMasters(w []string) {
	if w[1] == "hold" {
		b.masters.put(w[2], w[3], datatest.Duration(w[4]))
		return
	}
	b.masters.mu.Lock()
	defer b.masters.mu.Unlock()
	switch w[1] {
	case "lose":
		delete(b.masters.locks, w[2])
	case "take":
		b.masters.takes = datatest.Duration(w[2])
	case "answer":
		b.masters.answer = strings.TrimPrefix(w[2], "truly")
	}
}

// tell tells the Keeper of a command by a connection, which began then.
func (b *bench) tell(w []string, since time.Time) {
	by, key := b.holder(w[0]), []byte(w[2])
	outcome := func(word string) redlock.Outcome {
		o := outcomes[word]
		o.Since = since
		return o
	}
	switch w[1] {
	case "takes", "took":
		value := []byte(w[3])
		if letter, times, isLong := strings.Cut(w[3], "*"); isLong {
			n, _ := strconv.Atoi(times)
			value = bytes.Repeat([]byte(letter), n)
		} else if w[3] == "-" {
			value = nil
		}
		if w[1] == "takes" {
			b.masters.put(w[2], w[3], datatest.Duration(w[4]))
		}
		by.Took(0, key, value, datatest.Duration(w[4]), since)
	case "ended":
		b.Ended(outcome(w[3]), 0, by, key)
	case "prolonged":
		b.Prolonged(outcome(w[4]), 0, key, datatest.Duration(w[3]))
	case "ran":
		o, e := outcome("won"), redlock.Effect{Key: []byte(w[3]), Change: changes[w[2]], Value: []byte(w[4]), TTL: datatest.Duration(w[5])}
		if w[2] == "created-hash" || w[2] == "replaced" {
			e.Value, e.Holder = nil, e.Value
		}
		o.Effects = []redlock.Effect{e}
		b.Ran(o, 0, by)
	case "attempted":
		o := outcome("no-quorum")
		o.Attempted = []redlock.Effect{{Key: key, Value: []byte(w[3])}}
		b.Ran(o, 0, by)
	case "deletes":
		r := redlock.RunRequest{Keys: [][]byte{key, []byte("free")}}
		for _, word := range w[5:] {
			r.Args = append(r.Args, []byte(word))
		}
		if w[5] == "MULTI" {
			r.Args, r.Transaction = nil, [][][]byte{r.Args[1:]}
		}
		if heard := b.Deletions(&r, by); heard != nil {
			heard(key, []byte(w[3]))
		}
	default:
		panic(fmt.Sprint("the script says ", w))
	}
}

// came returns what came of an event.
func (b *bench) came(t *testing.T) (lines []string) {
	b.masters.mu.Lock()
	defer b.masters.mu.Unlock()
	lines = b.sayings()
	for line := range strings.Lines(b.log.String()) {
		lines = append(lines, "log: "+line)
	}
	b.log.Reset()
	show := func(what, now string) {
		if b.shown[what] != now {
			lines = append(lines, what+": "+now)
		}
		b.shown[what] = now
	}
	var held []string
	for _, key := range slices.Sorted(maps.Keys(b.masters.locks)) {
		switch l := b.masters.locks[key]; {
		case l.ends.IsZero():
			held = append(held, key+" "+l.value)
		case l.lasts():
			held = append(held, key+" "+l.value+" until "+short(l.ends.Sub(b.began)))
		}
	}
	show("masters hold", list(held))
	show("leases", list(b.leased(t)))
	c := b.Counts()
	var counted []string
	for kind, counts := range map[string]map[string]int64{
		"renewals ": c.Renewals, "releases ": c.Releases, "refused ": c.Refused, "": {"held": c.Held, "lost": c.Lost},
	} {
		for name, n := range counts {
			if text := fmt.Sprint(n); b.shown[kind+name] != text {
				b.shown[kind+name] = text
				counted = append(counted, fmt.Sprint(kind, name, " ", n))
			}
		}
	}
	slices.Sort(counted)
	if len(counted) > 0 {
		lines = append(lines, "counted: "+strings.Join(counted, ", "))
	}
	return lines
}

// leased returns the leases, and whose they are. One that has no answer to its renewal yet is marked.
func (b *bench) leased(t *testing.T) (all []string) {
	of := map[*Holder]bool{}
	b.mu.Lock()
	for at, l := range b.leases {
		of[l.holder] = true
		for name, h := range b.holders {
			if text := at.key + " of " + name; h == l.holder && l.term.pending {
				all = append(all, text+" (asked about)")
			} else if h == l.holder {
				all = append(all, text)
			}
		}
	}
	b.mu.Unlock()
	for name, h := range b.holders {
		if h.Holds() != of[h] {
			t.Errorf("%s has leases: %v, by itself %v", name, of[h], h.Holds())
		}
	}
	if any := b.Counts().Held > 0; b.Any() != any {
		t.Errorf("there are leases: %v, by themselves %v", any, b.Any())
	}
	slices.Sort(all)
	return all
}

// sayings returns what was said, once each, and when. Of questions about many keys it has the numbers only. The caller
// has the masters' mutex.
func (b *bench) sayings() (lines []string) {
	keys, times := map[string]map[string]bool{}, map[string][]time.Duration{}
	for _, s := range b.said {
		kind, _, _ := strings.Cut(s.text, " ")
		if keys[kind] == nil {
			keys[kind] = map[string]bool{}
		}
		keys[kind][s.key] = true
	}
	for _, s := range b.said {
		kind, _, _ := strings.Cut(s.text, " ")
		if n := len(keys[kind]); s.key != "" && max(n, len(b.masters.locks)) > 5 {
			times[fmt.Sprint(kind, " ", n, " locks, at most ", b.masters.most, " at a time")] = nil
		} else {
			text := strings.Replace(s.text, "KEY", s.key, 1) + " at "
			times[text] = append(times[text], s.at)
		}
	}
	for _, text := range slices.Sorted(maps.Keys(times)) {
		lines = append(lines, text+moments(times[text]))
	}
	b.said, b.masters.most = nil, b.masters.now
	return lines
}

// moments writes some times, or of many the first, the last and how many.
func moments(all []time.Duration) string {
	if n := len(all); n > 12 {
		return fmt.Sprintf("%s to %s, %d times", short(all[0]), short(all[n-1]), n)
	}
	var texts []string
	for _, at := range all {
		texts = append(texts, short(at))
	}
	return strings.Join(texts, " ")
}

// list writes some locks, or of many how many.
func list(all []string) string {
	switch n := len(all); {
	case n == 0:
		return "nothing"
	case n > 5:
		return fmt.Sprint(n, " locks")
	}
	return strings.Join(all, ", ")
}

package lane

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/redlock/quorum"
)

// TestScripts plays testdata/scripts/*.txt. Five masters are asked about keys. The events:
//
//	a enters KEYS [next] [acquires] [shares]   a request asks for its turn
//	a leaves, a refuses ANSWER, a gives up ANSWER
//	a goes                       the client of a request has gone
//	ask q about KEYS [nothing]   a question; nothing: it creates nothing
//	settle q by 1 2 3            masters have answered it
//	await KEYS [nothing] D       waits for at most D until three masters owe no answer
//	after D EVENT                an event in the middle of the next ones
//	creations KEY                how many questions were asked since the last creations
//	lanes                        how many lanes are left
func TestScripts(t *testing.T) {
	datatest.Play(t, "testdata/scripts/*.txt", func(t *testing.T, script *datatest.Script) {
		synctest.Test(t, func(t *testing.T) {
			p := &play{t: t, l: New[string](nil), turns: map[string]Turn[string]{}, leave: map[string]func(){}, questions: map[string]*Question{}, created: map[string]uint32{}}
			for event := range script.Events {
				if text := p.do(strings.Fields(event)); text != "" {
					script.Printf("%s", text)
				}
				for _, text := range p.heard() {
					script.Printf("%s", text)
				}
			}
		})
	})
}

type play struct {
	t         *testing.T
	l         *Lanes[string]
	mu        sync.Mutex
	turns     map[string]Turn[string]
	leave     map[string]func()
	said      []string // what requests heard, until it is told
	questions map[string]*Question
	created   map[string]uint32
}

// heard returns what requests have heard. What happens at one moment has no order.
func (p *play) heard() []string {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	said := p.said
	p.said = nil
	slices.Sort(said)
	return said
}

func (p *play) do(words []string) string {
	switch name := words[0]; {
	case name == "ask":
		keys, nothing := without(words[3:], "nothing")
		q := &Question{Keys: keys, Creates: !nothing}
		if p.questions[words[1]] == nil {
			p.questions[words[1]] = q
		}
		var to quorum.Set
		p.l.Send(p.questions[words[1]], five, func(free quorum.Set) { to = free })
		return "to" + masters(to)
	case name == "settle":
		var by quorum.Set
		for _, word := range words[3:] {
			by |= 1 << (p.number(word) - 1)
		}
		p.l.Settle(p.questions[words[1]], by)
	case name == "await":
		keys, nothing := without(words[1:len(words)-1], "nothing")
		began := time.Now()
		p.l.AwaitFree(&Question{Keys: keys, Creates: !nothing}, datatest.Duration(words[len(words)-1]), func(outstanding quorum.Set) bool { return (five &^ outstanding).Len() < 3 })
		return fmt.Sprintf("waited for %v", time.Since(began))
	case name == "after":
		time.AfterFunc(datatest.Duration(words[1]), func() { p.do(words[2:]) })
	case name == "sleep":
		time.Sleep(datatest.Duration(words[1]))
	case name == "creations":
		n, before := p.l.Creations(0, words[1]), p.created[words[1]]
		p.created[words[1]] = n
		return fmt.Sprint(n - before)
	case name == "lanes":
		return fmt.Sprint(p.l.count())
	case words[1] == "enters":
		p.enter(name, words[2:])
	case words[1] == "leaves":
		p.turns[name].Leave()
	case words[1] == "refuses":
		p.turns[name].Refuse(words[2])
	case words[1] == "gives":
		p.turns[name].GiveUp(words[3])
	case words[1] == "goes":
		p.leave[name]()
	default:
		p.t.Fatalf("no event %q", words)
	}
	return ""
}

// enter begins a request, which waits for its turn.
func (p *play) enter(name string, words []string) {
	keys, next := without(words, "next")
	keys, acquires := without(keys, "acquires")
	keys, shares := without(keys, "shares")
	ctx, leave := context.WithCancel(p.t.Context())
	if p.leave[name] != nil {
		leave() // it had gone before
	}
	p.leave[name] = leave
	go func() {
		turn, err := p.l.Enter(ctx, 0, keys, Queueing{Next: next, Acquires: acquires, Shares: shares})
		p.mu.Lock()
		defer p.mu.Unlock()
		p.turns[name] = turn
		switch {
		case err != nil:
			p.said = append(p.said, name+" hears "+err.Error())
			turn.Leave()
		case turn.Answer != nil:
			p.said = append(p.said, name+" hears "+*turn.Answer)
			turn.Leave()
		default:
			p.said = append(p.said, name+" has its turn")
		}
	}()
	synctest.Wait()
}

// without returns the words but one, and whether it was among them.
func without(words []string, word string) (others []string, has bool) {
	others = slices.DeleteFunc(slices.Clone(words), func(other string) bool { return other == word })
	return others, len(others) < len(words)
}

func (p *play) number(word string) int {
	n, err := strconv.Atoi(word)
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

// masters are the numbers of a set's masters.
func masters(set quorum.Set) (text string) {
	for i := range 5 {
		if set.Has(i) {
			text += fmt.Sprint(" ", i+1)
		}
	}
	if text == "" {
		return " nobody"
	}
	return text
}

// count returns the number of lanes.
func (l *Lanes[A]) count() (n int) {
	for i := range l.shards {
		n += len(l.shards[i].lanes)
	}
	return n
}

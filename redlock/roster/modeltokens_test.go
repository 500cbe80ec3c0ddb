package roster

import (
	"fmt"
	"time"

	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/quorum"
)

// The tokens of the model. A process asks for them through any database. It does what
// redlock/token does, and a server does what its script does. No token is ever given twice,
// and none is below one that was given before it was asked for. That also holds from one set
// to the next.

// tokenWorlds is the seed from which on worlds have tokens. The others stay as they were, so
// that they still catch what they were found to catch.
const tokenWorlds = 1_000_000

func (w *world) hasTokens() bool {
	return w.seed >= tokenWorlds && w.seed < powerWorlds || w.resizes() && w.seed%2 == 0
}

// powerWorlds is the seed from which on all masters of a world lose power again and again, while
// processes start and stop. These worlds have no tokens.
const powerWorlds = 2_000_000

func (w *world) losesPower() bool { return w.seed >= powerWorlds && w.seed < mendWorlds }

// worldOf returns the seed of the n-th world. Every eighth has tokens, and every eighth
// loses power or has a story.
func worldOf(n uint64) uint64 {
	switch n % 32 {
	case 15:
		return mendWorlds + n/16
	case 31:
		return swapWorlds + n/32
	}
	switch n % 8 {
	case 3:
		return tokenWorlds + n/8
	case 7:
		return powerWorlds + n/8
	}
	return 1 + n/4*3 + n%4
}

// hurryTokens makes half of these worlds give tokens faster than time goes. So the clock cannot
// help who has forgotten. But no more than N-Q of the masters forget there, and no process is
// kept from the others.
func (w *world) hurryTokens() {
	w.tokens.step = 1
	if !w.hasTokens() || !w.resizes() && w.seed%2 == 0 || w.resizes() && w.seed%4 == 0 {
		return
	}
	w.tokens.step, w.slow, w.moves = 100_000, false, false
	least := w.masters - quorum.Size(w.masters)
	if w.resizes() {
		least = min(1, least)
	}
	for i, f := range w.faults {
		if f.kind == resize {
			continue
		}
		kinds := []faultKind{crashEmpty, crashOld, flushAll, flushDB, save, restartOne}
		f.kind, f.who = kinds[(f.who+f.what)%len(kinds)], f.who%max(1, least)
		if least == 0 {
			f.kind = save
		}
		w.faults[i] = f
	}
}

// A tokenBallot asks every master to raise the token to number.
type tokenBallot struct {
	p      *process
	db     int
	began  time.Duration
	local  time.Time
	lag    time.Duration
	number int64
	first  int64 // counts where no token is on record
	raised int
	// masters is how many there were when it began.
	masters int
	over    bool
}

// A given is a token that a process gave.
type given struct {
	number int64
	at     time.Duration
	by     string
}

// tokens are the tokens that the world has seen.
type tokens struct {
	given []given
	step  int64 // from one token to the next
	// behind says that the wall clock of a process is behind. Then tokens may go back where
	// nobody remembers.
	behind bool
}

// A told is what a server answers to a token ballot.
type told struct {
	stored int64
	fits   bool
}

// raiseToken does what token.lua does.
func (s *toyServer) raiseToken(w *world, db int, number, first int64) told {
	own, ok := marker.Parse(s.texts[db])
	record, okay := marker.Parse(s.texts[0])
	same := own.Set == record.Set && own.Run == record.Run && own.Who() == record.Who() && own.DB == db && record.DB == 0
	if !ok || !okay || !same || s.clock(w).Milliseconds() < record.VotesFrom() {
		return told{}
	}
	stored := record.Token
	if stored == 0 {
		stored = first - 1
	}
	if stored < number {
		record.Token = number
		s.texts[0] = record.String()
	}
	return told{stored, true}
}

// askToken begins a ballot for a token, and another one later.
func (p *process) askToken() {
	p.tryToken(2)
	pause := p.w.between(50*time.Millisecond, 400*time.Millisecond)
	if p.w.rng.IntN(2) == 0 { // a server that asks for nothing meanwhile, learns nothing from the tokens of the day
		pause = p.w.between(time.Second, 3*p.w.limits.MaxQuarantine)
	}
	p.w.after(pause, func() { p.do(p.askToken) })
}

func (p *process) tryToken(again int) {
	w := p.w
	b := &tokenBallot{p: p, db: w.rng.IntN(p.dbs), began: w.now, local: p.now(), lag: p.lag, number: p.nextToken, first: marker.FirstToken(p.now()), masters: p.r.masters}
	for i := range b.masters {
		q := batch{token: b}
		if w.rng.IntN(4) == 0 {
			continue // the question is lost
		}
		if w.rng.IntN(20) == 0 {
			q.late = w.between(0, w.limits.MasterTimeout)
		}
		p.stream(Place{i, b.db}).send(q)
	}
	w.after(w.limits.MasterTimeout, func() {
		p.do(func() {
			if !b.over && again > 0 {
				b.over = true
				p.tryToken(again - 1)
			}
			b.over = true
		})
	})
}

// hear counts an answer of a master that votes.
func (b *tokenBallot) hear(it told) {
	p := b.p
	p.nextToken = max(p.nextToken, it.stored+p.w.tokens.step)
	if b.over || p.now().Sub(b.local) > p.w.limits.MasterTimeout || b.lag != p.lag {
		return
	}
	if it.stored < b.number {
		b.raised++
	}
	if b.raised >= quorum.Size(b.masters) {
		b.over = true
		p.nextToken = max(p.nextToken, b.number+p.w.tokens.step)
		p.w.gives(given{b.number, p.w.now, p.name}, b.began)
	}
}

func (w *world) gives(g given, asked time.Duration) {
	for _, before := range w.tokens.given {
		if before.number == g.number || before.at < asked && before.number > g.number {
			w.wrong = fmt.Sprintf("%s gives the token %d at %v, and %s gave %d at %v", g.by, g.number, w.now, before.by, before.number, before.at)
			w.log("%s", w.wrong)
		}
	}
	if !w.tokens.behind {
		w.tokens.given = append(w.tokens.given, g)
	}
	w.log("%s gives the token %d", g.by, g.number)
}

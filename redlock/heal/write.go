package heal

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/lane"
	"redlock-proxy/redlock/mend"
	"redlock-proxy/redlock/quorum"
)

// healGaps heals what was found so far. Between finding a key and writing copies it waits for quiet.
func (p *pass) healGaps() {
	if len(p.gaps) == 0 {
		return
	}
	gaps := p.gaps
	p.gaps, p.bytes = map[lane.Key]gap{}, 0
	p.box.Masters.Loop().Wait(p.quiet(), p.ctx.Done())
	keys := slices.SortedFunc(maps.Keys(gaps), func(a, b lane.Key) int { // in an order that is always the same
		return cmp.Or(cmp.Compare(a.DB, b.DB), cmp.Compare(a.Name, b.Name))
	})
	for _, k := range keys {
		if p.ctx.Err() != nil {
			return
		}
		p.heal(k, gaps[k])
		p.rest(1)
	}
}

// heal writes copies of a key to the masters that still lack it. It has the turn, so no
// other request of this process creates the key meanwhile.
func (p *pass) heal(k lane.Key, before gap) {
	turn, err := p.box.Lanes.Enter(p.ctx, k.DB, []string{k.Name}, lane.Queueing{Next: true})
	if err != nil {
		return
	}
	defer turn.Leave()
	now, took := p.look(k)
	g, found := p.bounds().find(now, p.box.Masters.Fillable(k.DB))
	g, same := g.still(before, len(now))
	if found != lacks || !same {
		p.partial = p.partial || found == lacks && g.lack != 0 // it has changed
		return
	}
	patience := p.box.Masters.Limits().MasterTimeout
	if took > 2*patience { // this process stood still, so nobody knows what was seen when
		p.partial = true
		return
	}
	// A copy of a lock that was released meanwhile is a stray.
	defer p.mender.Mend(k.DB, k.Name)
	patch := g.patch(now, took, patience)
	var written, refused quorum.Set
	for i, a := range p.write(k, patch) {
		_, target := patch.writes[i]
		switch {
		case !target:
		case !a.State.Heard():
			p.partial = true
		case a.Value:
			written |= 1 << i
		default:
			refused |= 1 << i
		}
	}
	p.tell(written, Written)
	p.tell(refused, Refused)
	p.partial = p.partial || refused != 0
}

// write sends a patch. A master writes only if it still has nothing under the key, and only within a
// master timeout of the look that the patch is based on. The answers tell which masters did.
func (p *pass) write(k lane.Key, patch patch) []quorum.Answer[bool] {
	return ballot.Poll(p.box, nil, ballot.Question[bool]{
		Kind:    ballot.KindHeal,
		DB:      k.DB,
		Keys:    []string{k.Name},
		Creates: true,
		// rule: markers cover healed copies
		TTL: p.box.Masters.Covered(patch.lives),
		Each: func(i int) []byte {
			if copy, target := patch.writes[i]; target {
				return effect.AppendReplace(nil, []byte(k.Name), copy, effect.Missing, patch.until[i])
			}
			return nil
		},
		Replies: 1,
		Parse:   ballot.ParseDone,
		Vote:    ballot.VoteOf,
		Decide:  quorum.Complete[bool],
	}).Answers
}

// look looks at all copies of a key. The images are no older than took when it returns.
func (p *pass) look(k lane.Key) (now copies, took time.Duration) {
	began := time.Now()
	now = mend.Look(p.box, ballot.KindHeal, k)
	return now, time.Since(began)
}

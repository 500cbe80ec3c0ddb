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
	"redlock-proxy/redlock/resp"
)

// healGaps heals what was found so far. Between finding a key and writing copies, and
// between that and the last look, it waits for quiet.
func (p *pass) healGaps() {
	if len(p.gaps) == 0 {
		return
	}
	gaps := p.gaps
	p.gaps, p.bytes = map[lane.Key]gap{}, 0
	p.box.Masters.Loop().Wait(p.quiet(), p.ctx.Done())
	patches := map[lane.Key]patch{}
	for _, k := range sorted(gaps) {
		if p.ctx.Err() != nil {
			break
		}
		if patch, wrote := p.heal(k, gaps[k]); wrote {
			patches[k] = patch
		}
		p.rest(1)
	}
	if len(patches) == 0 {
		return
	}
	// rule: new settings end no review, or copies of a released lock stay
	p.box.Masters.Loop().Wait(p.quiet(), p.Healer.ctx.Done())
	for _, k := range sorted(patches) {
		p.reviewLast(k, patches[k])
	}
}

// sorted returns the keys in an order that is always the same.
func sorted[A any](of map[lane.Key]A) []lane.Key {
	return slices.SortedFunc(maps.Keys(of), func(a, b lane.Key) int {
		return cmp.Or(cmp.Compare(a.DB, b.DB), cmp.Compare(a.Name, b.Name))
	})
}

// heal writes copies of a key to the masters that still lack it. It has the turn, so no
// other request of this process creates the key meanwhile. wrote is true if a copy may
// have been written that is not taken back yet.
func (p *pass) heal(k lane.Key, before gap) (repaired patch, wrote bool) {
	turn, err := p.box.Lanes.Enter(p.ctx, k.DB, []string{k.Name}, lane.Queueing{Next: true})
	if err != nil {
		return repaired, false
	}
	defer turn.Leave()
	looked := time.Now()
	now, took := p.look(k)
	b := p.bounds()
	g, found := b.find(now, p.box.Masters.Fillable(k.DB))
	g, same := g.still(before, len(now))
	if found != lacks || !same {
		p.partial = p.partial || found == lacks && g.lack != 0 // it has changed
		return repaired, false
	}
	patience := p.box.Masters.Limits().MasterTimeout
	if took > 2*patience { // this process stood still, so nobody knows what was seen when
		p.partial = true
		return repaired, false
	}
	patch := g.patch(now, took, patience)
	patch.seen = looked
	began := time.Now()
	answers := p.write(k, patch)
	took = time.Since(began)
	var written, refused quorum.Set
	seen := make(copies, len(answers))
	for i, a := range answers {
		seen[i] = quorum.Answer[effect.Image]{State: a.State, Value: a.Value.image}
		_, target := patch.writes[i]
		switch {
		case !target:
		case !a.State.Heard():
			p.partial = true
		case a.Value.done:
			written |= 1 << i
		case a.Value.image.Absent():
			refused |= 1 << i
		}
	}
	p.tell(written, Written)
	p.tell(refused, Refused)
	p.partial = p.partial || refused != 0
	back, decided := patch.review(seen, took, b.drift, p.mayHaveForgotten(patch))
	p.takeBack(k, seen, back)
	return patch, !decided || back != patch.ours(seen)
}

// A written is a master's answer to a patch: whether it wrote the copy, and what it holds
// now.
type written struct {
	done  bool
	image effect.Image
}

// write sends a patch, and looks at all copies behind it. A master writes only if it still
// has nothing under the key, and only within a master timeout of the look that the patch
// is based on. Masters that the patch is not for only look.
func (p *pass) write(k lane.Key, patch patch) []quorum.Answer[written] {
	key := []byte(k.Name)
	e := &effect.Examination{Keys: [][]byte{key}}
	return ballot.Poll(p.box, nil, ballot.Question[written]{
		Kind:    ballot.KindHeal,
		DB:      k.DB,
		Keys:    []string{k.Name},
		Creates: true,
		// rule: markers cover healed copies
		TTL: p.box.Masters.Covered(patch.lives),
		Each: func(i int) []byte {
			// A time of 0 is over, so a master that the patch is not for writes nothing.
			return e.Append(effect.AppendReplace(nil, key, patch.writes[i], effect.Missing, patch.until[i]), 0)
		},
		Replies: 1 + e.Replies(),
		Parse: func(replies [][]byte) (written, error) {
			done, err := ballot.ParseDone(replies[:1])
			if err != nil {
				return written{}, err
			}
			image, err := mend.ParseLook(e, replies[1:])
			return written{done, image}, err
		},
		Vote:   func(w written) ballot.Vote { return ballot.VoteOf(w.image.There()) },
		Decide: quorum.Complete[written],
	}).Answers
}

// look looks at all copies of a key. The images are no older than took when it returns.
func (p *pass) look(k lane.Key) (now copies, took time.Duration) {
	began := time.Now()
	now = mend.Look(p.box, ballot.KindHeal, k)
	return now, time.Since(began)
}

// reviewLast looks at a patch for the last time. What nobody can decide then is left to
// the Mender.
func (p *pass) reviewLast(k lane.Key, patch patch) {
	turn, err := p.box.Lanes.Enter(p.Healer.ctx, k.DB, []string{k.Name}, lane.Queueing{Next: true})
	if err != nil {
		return
	}
	defer turn.Leave()
	now, took := p.look(k)
	back, decided := patch.review(now, took, p.bounds().drift, p.mayHaveForgotten(patch))
	p.takeBack(k, now, back)
	if !decided {
		p.partial = true
		p.mender.Mend(k.DB, k.Name)
	}
}

// mayHaveForgotten tells whether a master that has lost its memory since the patch may vote
// again by now.
func (p *pass) mayHaveForgotten(patch patch) bool {
	return time.Since(patch.seen) >= p.box.Masters.Limits().RestartDelay
}

// takeBack deletes copies, each only if it still is as it was seen, to the byte and with
// its expiry, and only within a master timeout.
func (p *pass) takeBack(k lane.Key, seen copies, back quorum.Set) {
	if back == 0 {
		return
	}
	patience := p.box.Masters.Limits().MasterTimeout.Milliseconds()
	for i, a := range ballot.Poll(p.box, nil, ballot.Question[bool]{
		Kind: ballot.KindHeal,
		DB:   k.DB,
		Keys: []string{k.Name},
		Each: func(i int) []byte {
			if !back.Has(i) {
				return resp.AppendCommand(nil, "EXISTS", k.Name) // its answer is not used
			}
			image := seen[i].Value
			return effect.AppendReplace(nil, []byte(k.Name), effect.Missing, image, image.Now+patience)
		},
		Replies: 1,
		Parse:   ballot.ParseDone,
		Vote:    ballot.VoteOf,
		Decide:  quorum.Complete[bool],
	}).Answers {
		if back.Has(i) && a.State.Heard() && a.Value {
			p.tell(1<<i, TakenBack)
		}
	}
}

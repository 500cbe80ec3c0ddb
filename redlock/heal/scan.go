package heal

import (
	"time"

	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/lane"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/scan"
)

// Bounds of the gaps that a pass keeps in memory before it heals them.
const (
	mostGaps     = 1 << 12
	mostGapBytes = 16 << 20
)

// run makes the pass, and tells whether it was complete.
func (p *pass) run() (complete bool) {
	p.gaps, p.overSize = map[lane.Key]gap{}, map[lane.Key]bool{}
	all := scan.Walk(p.ctx, scan.Masters{Set: p.box.Masters}, func(db int, keys [][]byte) (more bool) {
		p.lookAtPage(db, keys)
		p.rest(len(keys))
		return true
	})
	p.healGaps()
	return all && !p.partial && p.ctx.Err() == nil
}

// rest keeps the pass from looking at more keys in a second than it may.
func (p *pass) rest(keys int) {
	if p.Rate > 0 {
		p.box.Masters.Loop().Wait(time.Duration(keys)*time.Second/time.Duration(p.Rate), p.ctx.Done())
	}
}

// lookAtPage finds the gaps among keys. Most keys have none, and one EXISTS for each tells.
func (p *pass) lookAtPage(db int, found [][]byte) {
	var frames []byte
	var keys []string
	for _, key := range found {
		k := lane.Key{DB: db, Name: string(key)}
		if _, known := p.gaps[k]; !known && !p.overSize[k] && p.Covers(db, key) {
			keys = append(keys, k.Name)
			frames = resp.AppendCommand(frames, []byte("EXISTS"), key)
		}
	}
	if len(keys) == 0 {
		return
	}
	b := ballot.Poll(p.box, frames, ballot.Question[[]bool]{
		Kind:    ballot.KindHeal,
		DB:      db,
		Replies: len(keys),
		Parse:   parseExists,
		Vote:    func([]bool) ballot.Vote { return ballot.Granted },
		Decide:  quorum.Complete[[]bool],
	})
	targets := p.box.Masters.Fillable(db)
	for n, key := range keys {
		if isLacked(b.Answers, n, targets) {
			p.lookForGap(lane.Key{DB: db, Name: key})
		}
	}
}

func parseExists(replies [][]byte) (there []bool, err error) {
	for _, reply := range replies {
		n, ok := resp.ParseInteger(reply)
		if err := ballot.OwnAs(reply, ok); err != nil {
			return nil, err
		}
		there = append(there, n > 0)
	}
	return there, nil
}

// isLacked tells whether a quorum has the n-th key and a target lacks it.
func isLacked(answers []quorum.Answer[[]bool], n int, targets quorum.Set) bool {
	held, lacked := 0, false
	for i, a := range answers {
		switch {
		case !a.State.Heard():
		case !a.Value[n]:
			lacked = lacked || targets.Has(i)
		case a.State == quorum.Answered:
			held++
		}
	}
	return lacked && held >= quorum.Size(len(answers))
}

// lookForGap keeps the gap in a key, if there is one.
func (p *pass) lookForGap(k lane.Key) {
	now, _ := p.look(k)
	g, found := p.bounds().find(now, p.box.Masters.Fillable(k.DB))
	switch found {
	case large:
		p.overSize[k] = true
		p.tell(g.lack, TooLarge)
	case lacks:
		p.gaps[k] = g
		if p.bytes += int64(len(g.content.Dump)); len(p.gaps) >= mostGaps || p.bytes >= mostGapBytes {
			p.healGaps()
		}
	}
}

// tell reports what became of copies on these masters.
func (p *pass) tell(masters quorum.Set, did Deed) {
	list := p.box.Masters.List()
	for i := range list.Size() {
		if masters.Has(i) {
			p.observer.Healed(list.At(i).Name(), did)
		}
	}
}

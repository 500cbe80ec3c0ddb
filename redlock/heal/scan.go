package heal

import (
	"bytes"
	"errors"
	"strconv"
	"time"

	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/lane"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/stream"
)

// Bounds of the gaps that a pass keeps in memory before it heals them.
const (
	mostGaps     = 1 << 12
	mostGapBytes = 16 << 20
)

// page is the COUNT of each SCAN.
const page = 100

// run makes the pass, and tells whether it was complete. It scans so many voting masters
// that each quorum has one of them, one master at a time. SCAN gets no pattern: a pattern
// saves the master no work, and no pattern covers the companions of locks.
func (p *pass) run() (complete bool) {
	p.gaps, p.overSize = map[lane.Key]gap{}, map[lane.Key]bool{}
	masters := p.box.Masters.List().Size()
	scans := quorum.Intersecting(masters)
	for i := 0; i < masters && scans > 0; i++ {
		if p.box.Masters.Voting(0).Has(i) && p.scanMaster(i) {
			scans--
		}
	}
	p.healGaps()
	return scans == 0 && masters == p.box.Masters.List().Size() && !p.partial && p.ctx.Err() == nil
}

// scanMaster looks at all keys of a master in all its databases. It returns false if the
// master failed to answer or does not vote.
func (p *pass) scanMaster(master int) bool {
	info, err := p.ask(master, 0, "INFO", "keyspace")
	if err != nil {
		return false
	}
	for _, db := range databases(info) {
		if !p.scanDatabase(master, db) {
			return false
		}
	}
	return true
}

func (p *pass) scanDatabase(master, db int) bool {
	p.box.Masters.Prepare(db, nil)
	for cursor := "0"; ; {
		reply, err := p.ask(master, db, "SCAN", cursor, "COUNT", strconv.Itoa(page))
		if err != nil {
			return false
		}
		next, keys, ok := parseScan(reply)
		if !ok {
			return false
		}
		p.lookAtPage(db, keys)
		p.rest(len(keys))
		if cursor = next; cursor == "0" || p.ctx.Err() != nil {
			return p.ctx.Err() == nil
		}
	}
}

// rest keeps the pass from looking at more keys in a second than it may.
func (p *pass) rest(keys int) {
	if p.Rate > 0 {
		stream.Sleep(p.ctx, time.Duration(keys)*time.Second/time.Duration(p.Rate))
	}
}

var errNoVoter = errors.New("the master does not vote or did not answer")

// ask puts one command to one master that votes, and waits for the reply. The check of the
// marker in the same batch must say that the master votes.
func (p *pass) ask(master, db int, args ...string) ([]byte, error) {
	type answer struct {
		reply []byte
		err   error
	}
	answers := make(chan answer, 1)
	hear := stream.AskerFunc(func(replies [][]byte, j stream.Judgement, err error) {
		a := answer{err: err}
		switch {
		case err != nil:
		case !j.Votes || resp.IsError(replies[0]):
			a.err = errNoVoter
		default:
			a.reply = bytes.Clone(replies[0])
		}
		answers <- a
	})
	s, now := p.box.Masters.At(master).Stream(db), time.Now()
	if !s.Send(stream.Call{Replies: 1, Asker: hear, Master: master}, stream.Sending{Frames: resp.AppendCommand(nil, args...)}, now) {
		return nil, errNoVoter
	}
	patience := time.NewTimer(4 * p.box.Masters.Limits().MasterTimeout)
	defer patience.Stop()
	select {
	case a := <-answers:
		return a.reply, a.err
	case <-patience.C:
		s.GiveUpIfStalled(time.Now())
		return nil, errNoVoter
	case <-p.ctx.Done():
		return nil, p.ctx.Err()
	}
}

// databases reads INFO keyspace. It returns the databases that hold more than the marker.
func databases(info []byte) (list []int) {
	text, _ := resp.ParseBulk(info)
	for line := range bytes.Lines(text) {
		name, rest, _ := bytes.Cut(bytes.TrimSpace(line), []byte(":keys="))
		number, isDatabase := bytes.CutPrefix(name, []byte("db"))
		count, _, _ := bytes.Cut(rest, []byte(","))
		db, err := strconv.Atoi(string(number))
		if n, ok := resp.ParseDecimal(count); isDatabase && err == nil && ok && n > 1 {
			list = append(list, db)
		}
	}
	return list
}

// parseScan reads a reply to SCAN.
func parseScan(reply []byte) (cursor string, keys [][]byte, ok bool) {
	parts, err := resp.Elements(reply)
	if err != nil || len(parts) != 2 {
		return "", nil, false
	}
	next, ok := resp.ParseBulk(parts[0])
	list, err := resp.Elements(parts[1])
	if !ok || err != nil {
		return "", nil, false
	}
	for _, item := range list {
		key, ok := resp.ParseBulk(item)
		if !ok {
			return "", nil, false
		}
		keys = append(keys, key)
	}
	return string(next), keys, true
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
		Decide:  whenAllAnswered[[]bool],
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

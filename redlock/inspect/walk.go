package inspect

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/stream"
)

const (
	// scanStep is the number of keys of one SCAN.
	scanStep = 128
	// lookStep is the number of keys that masters are asked for at a time. Lock commands
	// wait behind them for some 20 us.
	lookStep = 16
	// patience is the longest wait for one answer.
	patience = 5 * time.Second
)

// After each question a walk rests restShare times as long as the masters took, but for
// leastRest at least and mostRest at most. So it takes little from lock commands, and comes
// to its end also where masters are slow.
const (
	restShare = 3
	leastRest = time.Millisecond
	mostRest  = 50 * time.Millisecond
)

func restAfter(took time.Duration) time.Duration {
	return min(max(restShare*took, leastRest), mostRest)
}

var errNoVote = errors.New("the master may not vote now")

// Walk calls each with a few keys at a time, from all databases, and with what the masters
// hold under them. wants tells which keys to look at. It ends early if each returns false, or
// with ctx. all is true if every lock that was held all the time was shown.
func (r *Reader) Walk(ctx context.Context, wants func(db int, key []byte) bool, each func(db int, key []byte, copies []Copy) (more bool)) (all bool) {
	w := walk{source: r, ctx: ctx, wants: wants, each: each}
	masters := r.box.Masters.List().Size()
	return w.run(masters) && masters == r.box.Masters.List().Size()
}

// A source is what a walk asks. Reader is the one in service.
type source interface {
	votes(master int) bool
	databases(ctx context.Context, master int) ([]int, error)
	scan(ctx context.Context, master, db int, cursor []byte) (next []byte, keys [][]byte, err error)
	Look(db int, keys [][]byte) [][]Copy
}

// A walk is one Walk.
type walk struct {
	source
	ctx   context.Context
	wants func(db int, key []byte) bool
	each  func(db int, key []byte, copies []Copy) (more bool)

	scanned []int // masters whose keys have all been shown
	ended   bool  // each has returned false
}

// run scans so many masters that each quorum has one of them.
func (w *walk) run(masters int) (all bool) {
	need := quorum.Intersecting(masters)
	for i := 0; i < masters && len(w.scanned) < need; i++ {
		if w.votes(i) && w.scanMaster(i) {
			w.scanned = append(w.scanned, i)
		}
		if w.over() {
			return false
		}
	}
	return len(w.scanned) == need
}

func (w *walk) over() bool { return w.ended || w.ctx.Err() != nil }

// scanMaster shows the keys of one master. It returns false if it did not come to the end.
func (w *walk) scanMaster(i int) bool {
	dbs, err := w.databases(w.ctx, i)
	for _, db := range dbs {
		err = errors.Join(err, w.scanDatabase(i, db))
		if err != nil || w.over() {
			return false
		}
	}
	return err == nil
}

func (w *walk) scanDatabase(i, db int) error {
	for cursor := []byte("0"); ; {
		began := time.Now()
		next, keys, err := w.scan(w.ctx, i, db, cursor)
		if err != nil {
			return err
		}
		w.rest(began)
		keys = slices.DeleteFunc(keys, func(key []byte) bool { return !w.wants(db, key) })
		for few := range slices.Chunk(keys, lookStep) {
			if w.over() {
				return nil
			}
			w.show(db, few)
		}
		if cursor = next; string(cursor) == "0" || w.over() {
			return nil
		}
	}
}

// show looks at a few keys, and calls each with those that no master before has shown.
func (w *walk) show(db int, keys [][]byte) {
	began := time.Now()
	looked := w.Look(db, keys)
	for k, copies := range looked {
		shown := slices.ContainsFunc(w.scanned, func(i int) bool { return i < len(copies) && copies[i].there() })
		if !shown && !w.each(db, keys[k], copies) {
			w.ended = true
			return
		}
	}
	w.rest(began)
}

func (w *walk) rest(began time.Time) { stream.Sleep(w.ctx, restAfter(time.Since(began))) }

func (r *Reader) votes(master int) bool { return r.box.Masters.Voting(0).Has(master) }

// scan gives the master no pattern. One that a client made up may keep a master busy for long.
func (r *Reader) scan(ctx context.Context, i, db int, cursor []byte) (next []byte, keys [][]byte, err error) {
	r.box.Masters.Prepare(db, nil)
	reply, err := r.ask(ctx, i, db, resp.AppendCommand(nil, []byte("SCAN"), cursor, []byte("COUNT"), resp.Decimal(scanStep)))
	if err != nil {
		return nil, nil, err
	}
	return parseScan(reply)
}

func parseScan(reply []byte) (next []byte, keys [][]byte, err error) {
	parts, err := resp.Elements(reply)
	if err != nil || len(parts) != 2 {
		return nil, nil, errors.New("SCAN was refused: " + resp.ErrorText(reply))
	}
	next, ok := resp.ParseBulk(parts[0])
	list, err := resp.Elements(parts[1])
	if !ok || err != nil {
		return nil, nil, errors.New("SCAN has an unknown reply")
	}
	for _, element := range list {
		if key, ok := resp.ParseBulk(element); ok {
			keys = append(keys, key)
		}
	}
	return next, keys, nil
}

// databases are database 0 and those in which the master has more keys than its marker.
// An embedded master lists none, and clients reach it through this process only, so all that
// this process uses are asked.
func (r *Reader) databases(ctx context.Context, i int) ([]int, error) {
	if master := r.box.Masters.At(i); master.Embedded() {
		return master.Databases(), nil
	}
	reply, err := r.ask(ctx, i, 0, resp.AppendCommand(nil, []byte("INFO"), []byte("keyspace")))
	if err != nil {
		return nil, err
	}
	text, _ := resp.ParseBulk(reply)
	return parseKeyspace(text), nil
}

func parseKeyspace(text []byte) []int {
	dbs := []int{0}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		name, facts, _ := strings.Cut(strings.TrimPrefix(lines.Text(), "db"), ":keys=")
		count, _, _ := strings.Cut(facts, ",")
		db, err1 := strconv.Atoi(name)
		keys, err2 := strconv.Atoi(count)
		if err1 == nil && err2 == nil && db > 0 && keys > 1 {
			dbs = append(dbs, db)
		}
	}
	return dbs
}

// ask puts one command to one master that may vote, and returns a copy of its reply.
func (r *Reader) ask(ctx context.Context, i, db int, frames []byte) ([]byte, error) {
	type answer struct {
		reply []byte
		err   error
	}
	answers := make(chan answer, 1)
	asker := stream.AskerFunc(func(replies [][]byte, j stream.Judgement, err error) {
		a := answer{err: err}
		switch {
		case err == nil && !j.Votes:
			a.err = errNoVote
		case err == nil:
			a.reply = bytes.Clone(replies[0])
		}
		answers <- a
	})
	if !r.box.Masters.At(i).Stream(db).Send(stream.Call{Replies: 1, Asker: asker}, stream.Sending{Frames: frames}, time.Now()) {
		return nil, stream.ErrUnsent
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case a := <-answers:
		return a.reply, a.err
	case <-late.C:
		return nil, errNoVote
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

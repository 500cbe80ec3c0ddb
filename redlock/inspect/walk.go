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
	// scanStep is the number of keys of one SCAN, and scanPause the wait before the next.
	scanStep  = 64
	scanPause = 2 * time.Millisecond
	// lookStep is the number of keys of one ballot. Their values together must fit into
	// what a stream may hold: too long an answer ends the stream of every master.
	lookStep = 4
	// patience is the longest wait for one answer.
	patience = 5 * time.Second
)

var errNoVote = errors.New("the master may not vote now")

// Walk calls each with a few keys at a time that match the glob, from all databases, and
// with what the masters hold under them. wants tells which keys to look at. It ends early if
// each returns false, or with ctx. all is true if every lock that was held all the time was
// shown.
func (r *Reader) Walk(ctx context.Context, glob string, wants func(db int, key []byte) bool, each func(db int, key []byte, copies []Copy) (more bool)) (all bool) {
	masters := r.box.Masters
	need := quorum.Intersecting(masters.Size())
	var scanned []int
	for i := range masters.Size() {
		if len(scanned) == need {
			break
		}
		if !masters.Voting(0).Has(i) {
			continue
		}
		more, err := r.walkMaster(ctx, i, glob, wants, func(db int, key []byte, copies []Copy) bool {
			if slices.ContainsFunc(scanned, func(s int) bool { return copies[s].there() }) {
				return true // shown already
			}
			return each(db, key, copies)
		})
		switch {
		case !more:
			return false
		case err == nil:
			scanned = append(scanned, i)
		}
	}
	return len(scanned) == need
}

// walkMaster is Walk on one master. more is false if each said so or ctx has ended.
func (r *Reader) walkMaster(ctx context.Context, i int, glob string, wants func(int, []byte) bool, each func(int, []byte, []Copy) bool) (more bool, err error) {
	dbs, err := r.databases(ctx, i)
	if err != nil {
		return ctx.Err() == nil, err
	}
	for _, db := range dbs {
		r.box.Masters.Prepare(db)
		cursor := []byte("0")
		for {
			var keys [][]byte
			if cursor, keys, err = r.scan(ctx, i, db, cursor, glob); err != nil {
				return ctx.Err() == nil, err
			}
			keys = slices.DeleteFunc(keys, func(key []byte) bool { return !wants(db, key) })
			for few := range slices.Chunk(keys, lookStep) {
				if ctx.Err() != nil {
					break
				}
				for k, copies := range r.Look(db, few) {
					if !each(db, few[k], copies) {
						return false, nil
					}
				}
			}
			stream.Sleep(ctx, scanPause)
			if ctx.Err() != nil {
				return false, ctx.Err()
			}
			if string(cursor) == "0" {
				break
			}
		}
	}
	return true, nil
}

func (r *Reader) scan(ctx context.Context, i, db int, cursor []byte, glob string) (next []byte, keys [][]byte, err error) {
	args := [][]byte{[]byte("SCAN"), cursor, []byte("COUNT"), strconv.AppendInt(nil, scanStep, 10)}
	if glob != "" {
		args = append(args, []byte("MATCH"), []byte(glob))
	}
	reply, err := r.ask(ctx, i, db, resp.AppendCommand(nil, args...))
	if err != nil {
		return nil, nil, err
	}
	parts, err := resp.Elements(reply)
	if err != nil || len(parts) != 2 {
		return nil, nil, errors.New("SCAN was refused: " + resp.ErrorText(reply))
	}
	next, _ = resp.ParseBulk(parts[0])
	list, err := resp.Elements(parts[1])
	for _, element := range list {
		if key, ok := resp.ParseBulk(element); ok {
			keys = append(keys, key)
		}
	}
	return next, keys, err
}

// databases are those in which the master has more keys than its marker, and database 0:
// embedded masters list none.
func (r *Reader) databases(ctx context.Context, i int) (dbs []int, err error) {
	reply, err := r.ask(ctx, i, 0, resp.AppendCommand(nil, []byte("INFO"), []byte("keyspace")))
	if err != nil {
		return nil, err
	}
	text, _ := resp.ParseBulk(reply)
	dbs = []int{0}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		name, facts, _ := strings.Cut(strings.TrimPrefix(lines.Text(), "db"), ":keys=")
		count, _, _ := strings.Cut(facts, ",")
		db, err1 := strconv.Atoi(name)
		keys, err2 := strconv.Atoi(count)
		if err1 == nil && err2 == nil && db != 0 && keys > 1 {
			dbs = append(dbs, db)
		}
	}
	return dbs, nil
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

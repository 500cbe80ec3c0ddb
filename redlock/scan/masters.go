package scan

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"time"

	"redlock-proxy/redlock/loop"
	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/master"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/stream"
)

// Masters are a Source.
type Masters struct{ *master.Set }

const (
	// count is the number of keys of one SCAN.
	count = 128
	// patience is the longest wait for one answer.
	patience = 5 * time.Second
)

var (
	errNoVote = errors.New("the master does not vote, refused the command, or did not answer")
	errReply  = errors.New("the master's reply does not fit the command")
)

func (m Masters) Size() int { return m.List().Size() }

func (m Masters) Votes(master int) bool { return m.Voting(0).Has(master) }

// Server returns which run of the server answers, and database 0 and those that can hold locks in
// which it has more keys than its marker. An embedded master ends with this process and lists no databases,
// and clients reach it through this process only, so all that this process uses are scanned.
func (m Masters) Server(ctx context.Context, i int) (run string, dbs []int, err error) {
	if one := m.At(i); one.Embedded() {
		return "", one.Databases(), nil
	}
	reply, err := m.ask(ctx, i, 0, resp.AppendCommand(nil, "INFO"))
	if err != nil {
		return "", nil, err
	}
	return parseServer(reply)
}

func parseServer(reply []byte) (run string, dbs []int, err error) {
	text, ok := resp.ParseBulk(reply)
	run = stream.InfoField(text, "run_id")
	if !ok || run == "" {
		return "", nil, errReply
	}
	dbs = []int{0}
	for line := range bytes.Lines(text) {
		name, facts, _ := bytes.Cut(bytes.TrimPrefix(line, []byte("db")), []byte(":keys="))
		keys, _, _ := bytes.Cut(facts, []byte(","))
		db, err := strconv.Atoi(string(name))
		if n, ok := resp.ParseDecimal(bytes.TrimSpace(keys)); ok && err == nil && db > 0 && db < marker.Databases && n > 1 {
			dbs = append(dbs, db)
		}
	}
	return run, dbs, nil
}

// Page sends one SCAN.
func (m Masters) Page(ctx context.Context, i, db int, cursor []byte) (next []byte, keys [][]byte, err error) {
	m.Prepare(db, nil)
	reply, err := m.ask(ctx, i, db, resp.AppendCommand(nil, []byte("SCAN"), cursor, []byte("COUNT"), resp.Decimal(count)))
	if err != nil {
		return nil, nil, err
	}
	return parsePage(reply)
}

func parsePage(reply []byte) (next []byte, keys [][]byte, err error) {
	parts, err := resp.Elements(reply)
	if err != nil || len(parts) != 2 {
		return nil, nil, errReply
	}
	next, ok := resp.ParseBulk(parts[0])
	list, err := resp.Elements(parts[1])
	if !ok || err != nil {
		return nil, nil, errReply
	}
	for _, element := range list {
		key, ok := resp.ParseBulk(element)
		if !ok {
			return nil, nil, errReply
		}
		keys = append(keys, key)
	}
	return next, keys, nil
}

// ask puts one command to one master, and returns a copy of its reply.
func (m Masters) ask(ctx context.Context, i, db int, frames []byte) ([]byte, error) {
	var answer []byte // nil: there is no answer that counts
	answered := make(chan struct{})
	asker := stream.AskerFunc(func(replies [][]byte, j stream.Judgement, err error) {
		if err == nil && j.Votes && !resp.IsError(replies[0]) {
			answer = bytes.Clone(replies[0])
		}
		close(answered)
	})
	s := m.At(i).Stream(db)
	if !s.Send(stream.Call{Replies: 1, Asker: asker, Master: i}, stream.Sending{Frames: frames}, time.Now()) {
		return nil, errNoVote
	}
	switch m.Loop().Wait(max(patience, 4*m.Limits().MasterTimeout), answered, ctx.Done()) {
	case 1:
		return nil, ctx.Err()
	case loop.Late:
		return nil, errNoVote
	}
	if answer == nil {
		return nil, errNoVote
	}
	return answer, nil
}

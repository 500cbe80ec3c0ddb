package endpoint

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/redlock/resp"
)

const (
	// sentinelTimeout bounds the question to one Sentinel, including the dial. All are
	// asked at once.
	sentinelTimeout = 500 * time.Millisecond
	// answerLifetime is how long an answer is used. So many dials at once cost the Sentinels one question.
	answerLifetime = 100 * time.Millisecond
)

// sentinelGroup is a master and its replicas. Sentinels say which server is the master
// now. Many goroutines may use it at once.
type sentinelGroup struct {
	name      string   // the Sentinels' name for the master
	addresses []string // the Sentinels' addresses
	entry     Endpoint // the login and TLS for each Sentinel

	// turn is a mutex whose Lock a context can end. It guards the fields below, and is
	// held for the bounded time in which the Sentinels are asked.
	turn  chan struct{}
	found string // the master's address; empty if the Sentinels must be asked
	asked time.Time
}

func newSentinelGroup(name string, addresses []string, entry Endpoint) *sentinelGroup {
	return &sentinelGroup{name: name, addresses: addresses, entry: entry, turn: make(chan struct{}, 1)}
}

// sentinelAnswer is one Sentinel's answer.
type sentinelAnswer struct {
	sentinel string
	err      error
	master   string // the master's address
	epoch    int64  // of the configuration; the latest one counts
	replicas int    // the number of known replicas
}

// master returns the master's address. It asks the Sentinels unless they answered a
// moment ago.
func (g *sentinelGroup) master(ctx context.Context) (address string, err error) {
	select {
	case g.turn <- struct{}{}:
		defer func() { <-g.turn }()
	case <-ctx.Done():
		return "", fmt.Errorf("asking the Sentinels for %s: %w", g.name, ctx.Err())
	}
	if g.found != "" && time.Since(g.asked) < answerLifetime {
		return g.found, nil
	}
	if g.found, err = agreedMaster(g.name, g.ask(ctx, majorityAgrees(len(g.addresses)))); err != nil {
		return "", err
	}
	g.asked = time.Now()
	return g.found, nil
}

// ask asks all Sentinels at once. It returns as soon as all have answered, failed or
// timed out, or when isEnough accepts the answers so far.
func (g *sentinelGroup) ask(ctx context.Context, isEnough func([]sentinelAnswer) bool) []sentinelAnswer {
	ctx, cancel := context.WithTimeout(ctx, sentinelTimeout)
	defer cancel()
	answers := make(chan sentinelAnswer, len(g.addresses))
	for _, address := range g.addresses {
		go func() { answers <- g.askOne(ctx, address) }() // ends with ctx
	}
	var all []sentinelAnswer
	for range g.addresses {
		if all = append(all, <-answers); isEnough(all) {
			break
		}
	}
	return all
}

func (g *sentinelGroup) askOne(ctx context.Context, address string) sentinelAnswer {
	answer := sentinelAnswer{sentinel: address}
	client := redis.NewSentinelClient(g.entry.at(address).Options())
	defer client.Close()
	fields, err := client.Master(ctx, g.name).Result()
	switch {
	case err != nil:
		answer.err = err
	case fields["ip"] == "" || fields["port"] == "":
		answer.err = errors.New("it does not say where the master is")
	default:
		answer.master = net.JoinHostPort(fields["ip"], fields["port"])
		answer.epoch, _ = strconv.ParseInt(fields["config-epoch"], 10, 64)
		answer.replicas, _ = strconv.Atoi(fields["num-slaves"])
	}
	return answer
}

// majorityAgrees tells whether a majority of the Sentinels names one server, so that the
// others cannot outvote it.
func majorityAgrees(sentinels int) func([]sentinelAnswer) bool {
	return func(answers []sentinelAnswer) bool {
		votes := map[string]int{}
		for _, answer := range answers {
			if votes[answer.master]++; answer.master != "" && votes[answer.master] > sentinels/2 {
				return true
			}
		}
		return false
	}
}

// agreedMaster is the master's address in the answer with the latest configuration. A
// Sentinel that was cut off may still name the old master.
func agreedMaster(name string, answers []sentinelAnswer) (address string, err error) {
	var silent []string
	named := slices.DeleteFunc(slices.Clone(answers), func(answer sentinelAnswer) bool {
		if answer.err != nil {
			silent = append(silent, fmt.Sprintf("%s: %v", answer.sentinel, answer.err))
		}
		return answer.err != nil
	})
	if len(named) == 0 {
		slices.Sort(silent)
		return "", fmt.Errorf("no Sentinel says where %s is (%s)", name, strings.Join(silent, "; "))
	}
	latest := slices.MaxFunc(named, func(a, b sentinelAnswer) int { return cmp.Compare(a.epoch, b.epoch) })
	return latest.master, nil
}

// SentinelReport is the answers of one server's Sentinels.
type SentinelReport struct {
	Asked    int            // the number of Sentinels; 0 if the server has none
	Answered int            // the number that know the master
	Silent   []string       // the errors of the others
	Named    map[string]int // masters' addresses, each with the number of Sentinels that named it
	Master   string         // the address that counts; empty if no Sentinel knows
	Replicas int            // the largest number of replicas that a Sentinel knows
}

// AskSentinels asks every Sentinel of the server.
func (e Endpoint) AskSentinels(ctx context.Context) (report SentinelReport) {
	g := e.sentinels
	if g == nil {
		return report
	}
	answers := g.ask(ctx, func([]sentinelAnswer) bool { return false })
	report = SentinelReport{Asked: len(g.addresses), Named: map[string]int{}}
	for _, answer := range answers {
		if answer.err != nil {
			report.Silent = append(report.Silent, fmt.Sprintf("%s: %v", answer.sentinel, answer.err))
			continue
		}
		report.Answered++
		report.Named[answer.master]++
		report.Replicas = max(report.Replicas, answer.replicas)
	}
	report.Master, _ = agreedMaster(g.name, answers)
	return report
}

// dialMaster is Dial for a group. It dials the server that the Sentinels name and checks
// that the server itself claims to be a master. If not, it asks the Sentinels again, and
// dials the server that they name then, unless it is the same.
func (e Endpoint) dialMaster(ctx context.Context) (net.Conn, error) {
	address, err := e.sentinels.master(ctx)
	if err != nil {
		return nil, err
	}
	for {
		conn, err := e.at(address).dialVerified(ctx)
		if err == nil {
			return conn, nil
		}
		err = fmt.Errorf("%s, which the Sentinels name as %s: %w", address, e.sentinels.name, e.Explain(err))
		named, failure := e.sentinels.master(ctx)
		if failure != nil || named == address {
			return nil, err
		}
		address = named
	}
}

// at is the endpoint of one server of a group.
func (e Endpoint) at(address string) Endpoint {
	e.Name, e.Network, e.Address, e.sentinels = address, "tcp", address, nil
	return e
}

// dialVerified is Dial with a check: a server that says it is a replica is an error. A
// server that refuses to say its role is accepted.
func (e Endpoint) dialVerified(ctx context.Context) (net.Conn, error) {
	conn, err := e.Dial(ctx)
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(earlier(ctx, dialTimeout))
	if err = e.askRole(conn); err != nil {
		_ = conn.Close()
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	return conn, nil
}

// askRole returns an error if the server behind a new connection is a replica.
func (e Endpoint) askRole(conn net.Conn) error {
	request, commands := e.appendAuth(nil)
	if _, err := conn.Write(resp.AppendCommand(request, "ROLE")); err != nil {
		return err
	}
	replies, err := resp.NewReader(conn, 512, maxAnswer).Next(nil, commands+1)
	if err != nil {
		return err
	}
	role := replies[commands]
	if role[0] == '*' && !bytes.Contains(role[:min(len(role), 20)], []byte("master")) {
		return errors.New("it is a replica")
	}
	return nil
}

// appendAuth appends AUTH with the endpoint's credentials, if it has any.
func (e Endpoint) appendAuth(dst []byte) (request []byte, commands int) {
	switch {
	case e.Username != "":
		return resp.AppendCommand(dst, "AUTH", e.Username, string(e.Password)), 1
	case e.Password != "":
		return resp.AppendCommand(dst, "AUTH", string(e.Password)), 1
	}
	return dst, 0
}

// earlier is the context's deadline, or one after patience if that is earlier.
func earlier(ctx context.Context, patience time.Duration) time.Time {
	at := time.Now().Add(patience)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(at) {
		return deadline
	}
	return at
}

// same tells whether two groups are the same as written: the same name at a common
// Sentinel.
func (g *sentinelGroup) same(other *sentinelGroup) bool {
	return g.name == other.name && slices.ContainsFunc(g.addresses, func(a string) bool {
		return slices.ContainsFunc(other.addresses, func(b string) bool { return CanonicalAddress(a) == CanonicalAddress(b) })
	})
}

// sameEntry tells whether two groups ask the same Sentinels in the same way.
func (g *sentinelGroup) sameEntry(other *sentinelGroup) bool {
	if g == nil || other == nil {
		return g == other
	}
	return g.entry.SameEntry(other.entry) && slices.Equal(g.addresses, other.addresses)
}

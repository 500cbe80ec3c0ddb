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
	// sentinelTimeout bounds asking one Sentinel, connecting included. All are
	// asked at once.
	sentinelTimeout = 500 * time.Millisecond
	// sentinelNews is how long an answer holds, and sentinelDoubt how long one
	// that led to no master: many dials at once cost the Sentinels one question.
	sentinelNews  = time.Second
	sentinelDoubt = 100 * time.Millisecond
)

// sentinelGroup is a master and its replicas, of which Sentinels say which
// server is the master now. It may be used by many goroutines at once.
type sentinelGroup struct {
	name      string   // of the master, as the Sentinels have it
	addresses []string // of the Sentinels
	entry     Endpoint // how each of them is entered

	turn  chan struct{} // held, for a bounded time, by who asks the Sentinels or looks at what they said
	found string        // the master's address; empty: to be asked for
	asked time.Time
	doubt bool // found led to no master
}

func newSentinelGroup(name string, addresses []string, entry Endpoint) *sentinelGroup {
	return &sentinelGroup{name: name, addresses: addresses, entry: entry, turn: make(chan struct{}, 1)}
}

// sentinelAnswer is what one Sentinel said.
type sentinelAnswer struct {
	sentinel string
	err      error
	master   string // its address
	epoch    int64  // of this configuration: the later one counts
	replicas int    // that it knows
}

// master returns the address of the master, as the Sentinels say or said a
// moment ago.
func (g *sentinelGroup) master(ctx context.Context) (address string, err error) {
	select {
	case g.turn <- struct{}{}:
		defer func() { <-g.turn }()
	case <-ctx.Done():
		return "", fmt.Errorf("asking the Sentinels for %s: %w", g.name, ctx.Err())
	}
	holds := sentinelNews
	if g.doubt {
		holds = sentinelDoubt
	}
	if g.found != "" && time.Since(g.asked) < holds {
		return g.found, nil
	}
	if g.found, err = agreedMaster(g.name, g.ask(ctx, majorityAgrees(len(g.addresses)))); err != nil {
		return "", err
	}
	g.asked, g.doubt = time.Now(), false
	return g.found, nil
}

// mistrust has the Sentinels asked again soon, for at an address that they gave
// there is no master.
func (g *sentinelGroup) mistrust(address string) {
	g.turn <- struct{}{}
	defer func() { <-g.turn }()
	g.doubt = g.doubt || g.found == address
}

// ask asks all Sentinels at once, and returns when all have answered, failed or
// been silent for too long, or enough says that those so far will do.
func (g *sentinelGroup) ask(ctx context.Context, enough func([]sentinelAnswer) bool) []sentinelAnswer {
	ctx, cancel := context.WithTimeout(ctx, sentinelTimeout)
	defer cancel()
	answers := make(chan sentinelAnswer, len(g.addresses))
	for _, address := range g.addresses {
		go func() { answers <- g.askOne(ctx, address) }() // ends with ctx
	}
	var all []sentinelAnswer
	for range g.addresses {
		if all = append(all, <-answers); enough(all) {
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

// majorityAgrees tells whether so many answers name one server that the others
// cannot outvote it.
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

// agreedMaster is the address that the answer with the latest configuration
// names: a Sentinel that was cut off may still name the master of before.
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

// SentinelReport is what the Sentinels of one server said.
type SentinelReport struct {
	Asked    int            // 0: the server has no Sentinels
	Answered int            // how many know the master
	Silent   []string       // why the others did not
	Named    map[string]int // addresses of masters, and how many Sentinels named each
	Master   string         // the one that counts; empty: nobody says
	Replicas int            // the most that one of them knows
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

// dialMaster is Dial for a group: it dials the server that the
// Sentinels name and makes sure that it takes itself for a master. Where it does
// not, they are asked again, and if they name another one that is dialled.
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
		err = fmt.Errorf("%s, which the Sentinels name as %s: %w", address, e.sentinels.name, err)
		e.sentinels.mistrust(address)
		named, failure := e.sentinels.master(ctx)
		if failure != nil || named == address {
			return nil, err
		}
		address = named
	}
}

// at is one server of a group.
func (e Endpoint) at(address string) Endpoint {
	e.Name, e.Network, e.Address, e.sentinels = address, "tcp", address, nil
	return e
}

// dialVerified is Dial, and an error if the server says that it is a replica.
// One that does not tell its role here is believed to be what it was named.
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

// askRole is an error if a server that was just connected to is a replica.
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

// appendAuth appends what the endpoint's credentials ask for.
func (e Endpoint) appendAuth(dst []byte) (request []byte, commands int) {
	switch {
	case e.Username != "":
		return resp.AppendCommand(dst, []byte("AUTH"), []byte(e.Username), []byte(e.Password)), 1
	case e.Password != "":
		return resp.AppendCommand(dst, []byte("AUTH"), []byte(e.Password)), 1
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

// same tells whether two groups are one, as far as writing shows: the same name
// at a common Sentinel.
func (g *sentinelGroup) same(other *sentinelGroup) bool {
	return g.name == other.name && slices.ContainsFunc(g.addresses, func(a string) bool {
		return slices.ContainsFunc(other.addresses, func(b string) bool { return CanonicalAddress(a) == CanonicalAddress(b) })
	})
}

// sameEntry tells whether the same Sentinels are asked in the same way.
func (g *sentinelGroup) sameEntry(other *sentinelGroup) bool {
	if g == nil || other == nil {
		return g == other
	}
	return g.entry.SameEntry(other.entry) && slices.Equal(g.addresses, other.addresses)
}

package history

import (
	"fmt"
	"time"
)

// A Call is one call of a client for a lock, with its times and its answer. The times
// count from the beginning of the campaign, on the monotonic clock.
type Call struct {
	Client int
	Proxy  int
	Key    string
	Token  string // of one acquisition, even if all acquisitions store the same value
	Asked  Question
	TTL    time.Duration // of acquire and extend
	Begin  time.Duration
	End    time.Duration
	Answer Answer
}

// Answer is what a client got: granted, refused, or an error. After an error the client
// knows nothing.
type Answer string

const (
	Yes    Answer = "yes"
	no     Answer = "no"
	Unsure Answer = "unsure"
)

func AnswerOf(granted bool, err error) Answer {
	switch {
	case err != nil:
		return Unsure
	case granted:
		return Yes
	}
	return no
}

type Question string

const (
	AskAcquire Question = "acquire"
	AskExtend  Question = "extend"
	AskRelease Question = "release"
)

func (c Call) String() string {
	return fmt.Sprintf("%s to %s: client %d, proxy %d: %s %s for %s as %s: %s", Stamp(c.Begin), Stamp(c.End),
		c.Client, c.Proxy+1, c.Asked, c.Key, c.TTL, c.Token, c.Answer)
}

func Stamp(d time.Duration) string { return fmt.Sprintf("%.6fs", d.Seconds()) }

// LostToDrift is the time that a careful client subtracts from a lease by itself: the
// clock drift of the published algorithm.
func LostToDrift(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }

// A lease is one granted acquisition, for the time that its client can rely on it.
type lease struct {
	client  int
	key     string
	token   string
	taken   Call
	extends []Call
	given   *Call // the first release that the client asked for; nil: none
	until   time.Duration
}

// held returns the time during which the client may act on the lock. If there is none, to
// is not after from.
func (l *lease) held() (from, to time.Duration) {
	from, to = l.taken.End, l.until
	if l.given != nil {
		to = min(to, l.given.Begin)
	}
	return from, to
}

func (l *lease) String() string {
	from, to := l.held()
	return fmt.Sprintf("client %d as %s from %s to %s", l.client, l.token, Stamp(from), Stamp(to))
}

// leasesOf finds the leases in the calls. The calls of each client are in the order in
// which the client made them.
func leasesOf(calls []Call) []*lease {
	var all []*lease
	byToken := map[string]*lease{}
	for _, c := range calls {
		l := byToken[c.Token]
		switch {
		case c.Asked == AskAcquire && c.Answer == Yes:
			l = &lease{client: c.Client, key: c.Key, token: c.Token, taken: c, until: c.Begin + c.TTL - LostToDrift(c.TTL)}
			byToken[c.Token] = l
			all = append(all, l)
		case l == nil: // never granted: nobody relies on it
		case c.Asked == AskExtend:
			l.extends = append(l.extends, c)
			if c.Answer == Yes {
				l.until = max(l.until, c.Begin+c.TTL-LostToDrift(c.TTL))
			}
		case l.given == nil:
			l.given = &c
		}
	}
	return all
}

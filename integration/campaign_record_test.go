package integration

import (
	"fmt"
	"time"
)

// A lockCall is one thing that a client asked of a lock, when, and what it was
// told. Times count from the beginning of the campaign, on the clock that only
// goes forward.
type lockCall struct {
	client int
	proxy  int
	key    string
	token  string // of one acquisition, also where all acquisitions store the same value
	asked  lockQuestion
	ttl    time.Duration // of acquire and extend
	begin  time.Duration
	end    time.Duration
	answer lockAnswer
}

// lockAnswer is what a client was told: granted, refused, or an error, after
// which it knows nothing.
type lockAnswer string

const (
	yes    lockAnswer = "yes"
	no     lockAnswer = "no"
	unsure lockAnswer = "unsure"
)

func answerOf(granted bool, err error) lockAnswer {
	switch {
	case err != nil:
		return unsure
	case granted:
		return yes
	}
	return no
}

type lockQuestion string

const (
	askAcquire lockQuestion = "acquire"
	askExtend  lockQuestion = "extend"
	askRelease lockQuestion = "release"
)

func (c lockCall) String() string {
	return fmt.Sprintf("%s to %s: client %d, proxy %d: %s %s for %s as %s: %s", stamp(c.begin), stamp(c.end),
		c.client, c.proxy+1, c.asked, c.key, c.ttl, c.token, c.answer)
}

func stamp(d time.Duration) string { return fmt.Sprintf("%.6fs", d.Seconds()) }

// lostToDrift is what a careful client takes off a lease of its own accord:
// the published algorithm's clock drift.
func lostToDrift(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }

// A lease is one acquisition that was granted, as its client can count on it.
type lease struct {
	client  int
	key     string
	token   string
	taken   lockCall
	extends []lockCall
	given   *lockCall // the first release that was asked for; nil: none
	until   time.Duration
}

// held is the time during which the client may act on the lock. Its end is
// not after its beginning if there was none.
func (l *lease) held() (from, to time.Duration) {
	from, to = l.taken.end, l.until
	if l.given != nil {
		to = min(to, l.given.begin)
	}
	return from, to
}

func (l *lease) String() string {
	from, to := l.held()
	return fmt.Sprintf("client %d as %s from %s to %s", l.client, l.token, stamp(from), stamp(to))
}

// leasesOf finds the leases in what each client noted, in the order in which
// it noted it.
func leasesOf(calls []lockCall) []*lease {
	var all []*lease
	byToken := map[string]*lease{}
	for _, c := range calls {
		l := byToken[c.token]
		switch {
		case c.asked == askAcquire && c.answer == yes:
			l = &lease{client: c.client, key: c.key, token: c.token, taken: c, until: c.begin + c.ttl - lostToDrift(c.ttl)}
			byToken[c.token] = l
			all = append(all, l)
		case l == nil: // never granted: whatever came of it, nobody relies on it
		case c.asked == askExtend:
			l.extends = append(l.extends, c)
			if c.answer == yes {
				l.until = max(l.until, c.begin+c.ttl-lostToDrift(c.ttl))
			}
		case l.given == nil:
			l.given = &c
		}
	}
	return all
}

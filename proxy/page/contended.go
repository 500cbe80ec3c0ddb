package page

import (
	"cmp"
	"slices"
	"time"

	"redlock-proxy/proxy/events"
)

const (
	mostHot     = 10
	mostWaiters = 20
	// waitsAfter is how long a lock command runs before its client counts as waiting.
	waitsAfter = 100 * time.Millisecond
)

// Waiters are the clients whose lock command has no answer yet.
type Waiters struct {
	Count  int      `json:"count"`
	Oldest []Waiter `json:"oldest"`
}

// A Waiter is one of them. Name is what the client calls itself.
type Waiter struct {
	Client  string `json:"client"`
	Name    string `json:"name"`
	Command string `json:"command"`
	Key     string `json:"key"`
	DB      int    `json:"db"`
	Since   Time   `json:"since"`
}

// waitersOf returns the clients that wait, those that have waited longest first.
func waitersOf(clients []events.ClientInfo, now time.Time) Waiters {
	clients = slices.DeleteFunc(clients, func(c events.ClientInfo) bool {
		return c.Command == "" || now.Sub(c.Began) < waitsAfter
	})
	slices.SortFunc(clients, func(a, b events.ClientInfo) int {
		return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.ID, b.ID))
	})
	w := Waiters{Count: len(clients), Oldest: []Waiter{}}
	for _, c := range clients[:min(len(clients), mostWaiters)] {
		w.Oldest = append(w.Oldest, Waiter{Client: c.Address, Name: c.Name, Command: c.Command, Key: c.Key, DB: c.DB, Since: Time(c.Began)})
	}
	return w
}

package corpus

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"redlock-proxy/integration/rig"
)

// Differential runs scenarios on a plain server and on another address, and compares.
type Differential struct {
	Plain    *rig.Server
	Addr     string
	Protocol int
	States   func(t testing.TB, plain *rig.Server, keys []string) error // nil: replies only
	Reword   func(reply []byte) []byte                                  // turns a reply of plain into the proxy's form
}

// triesOfAScenario is how often a scenario is run if it is answered QUORUMLOST: on a busy
// machine too few masters may answer in time.
const triesOfAScenario = 5

func (d Differential) Run(t *testing.T, scenarios []Scenario) {
	t.Helper()
	commands, differences := 0, 0
	plain, proxied := d.dial(t)
	for i, each := range scenarios {
		var n string
		var err error
		for try := range triesOfAScenario {
			n = fmt.Sprintf("%d-%d-%d", d.Protocol, i, try) // other keys each time
			numbered := each.numbered(n)
			commands += len(numbered.steps)
			if err = numbered.run(plain, proxied); !undecided(err) {
				break
			}
			t.Logf("scenario %q again: %v", each.Name, err)
			plain, proxied = d.dial(t)
		}
		if err == nil && d.States != nil {
			if err = d.States(t, d.Plain, each.keys(n)); err != nil {
				err = fmt.Errorf("scenario %q, afterwards: %w", each.Name, err)
			}
		}
		if err == nil {
			continue
		}
		t.Error(err)
		if differences++; differences == 100 {
			t.Fatal("too many differences")
		}
		// A stopped scenario may leave a transaction or unread replies behind.
		plain, proxied = d.dial(t)
	}
	t.Logf("%d scenarios, %d commands, %d differences", len(scenarios), commands, differences)
}

// undecided tells whether the proxy answered QUORUMLOST.
func undecided(err error) bool {
	var m *mismatch
	return errors.As(err, &m) && bytes.HasPrefix(m.proxied, []byte("-QUORUMLOST "))
}

func (d Differential) dial(t *testing.T) (plain, proxied *rig.Wire) {
	plain, proxied = rig.Dial(t, d.Plain.Addr(), d.Protocol), rig.Dial(t, d.Addr, d.Protocol)
	plain.Reword = d.Reword
	return plain, proxied
}

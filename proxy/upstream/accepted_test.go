package upstream

import (
	"fmt"
	"testing"
	"time"

	"github.com/tidwall/redcon"
)

// The memory of accepted logins is bounded and holds no password.
func TestAcceptedLogins(t *testing.T) {
	a, other := NewAcceptedLogins(), NewAcceptedLogins()
	right := a.Login("server", "alice", []byte("pw"), true)
	for what, login := range map[string]ClientLogin{
		"another salt": other.Login("server", "alice", []byte("pw"), true), "another server": a.Login("serve", "ralice", []byte("pw"), true),
		"another user": a.Login("server", "alicep", []byte("w"), true), "an empty password": a.Login("server", "alice", nil, true),
		"nothing said": a.Login("server", "alice", []byte("pw"), false),
	} {
		if login.digest == right.digest {
			t.Errorf("%s makes the same digest", what)
		}
	}
	now := time.Now()
	for i := range 2 * acceptedPasswords {
		a.Remember(a.Login("server", "alice", redcon.AppendInt(nil, int64(i)), true), now)
	}
	a.Remember(right, now)
	if n := len(a.byUser["alice"]); n != acceptedPasswords {
		t.Errorf("%d logins of one user", n)
	}
	if _, known := a.AcceptedAt(right); !known {
		t.Error("the last login is not known")
	}
	a.Forget(right)
	if _, known := a.AcceptedAt(right); known {
		t.Error("a forgotten login is known")
	}
	for i := range acceptedUsers + 10 {
		a.Remember(ClientLogin{User: fmt.Sprint(i)}, now.Add(time.Duration(i+1)))
	}
	if len(a.byUser) != acceptedUsers || a.Knows("alice") || a.Knows("5") || !a.Knows(fmt.Sprint(acceptedUsers)) {
		t.Errorf("%d users are remembered", len(a.byUser))
	}
}

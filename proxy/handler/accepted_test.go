package handler

import (
	"fmt"
	"testing"
	"time"

	"github.com/tidwall/redcon"
)

// The memory of accepted logins is bounded and holds no password.
func TestAcceptedLogins(t *testing.T) {
	a, other := newAcceptedLogins(), newAcceptedLogins()
	right := a.credentials("server", "alice", []byte("pw"))
	for what, login := range map[string]credentials{
		"another salt": other.credentials("server", "alice", []byte("pw")), "another server": a.credentials("serve", "ralice", []byte("pw")),
		"another user": a.credentials("server", "alicep", []byte("w")), "an empty password": a.credentials("server", "alice", nil),
		"no password": a.credentials("server", "alice"),
	} {
		if login.digest == right.digest {
			t.Errorf("%s makes the same digest", what)
		}
	}
	if a.credentials("server", "alice", nil) == a.credentials("server", "alice") {
		t.Error("an empty password is like none")
	}
	now := time.Now()
	for i := range 2 * acceptedPasswords {
		a.remember(a.credentials("server", "alice", redcon.AppendInt(nil, int64(i))), now)
	}
	a.remember(right, now)
	if n := len(a.byUser["alice"]); n != acceptedPasswords {
		t.Errorf("%d logins of one user", n)
	}
	if _, known := a.acceptedAt(right); !known {
		t.Error("the last login is not known")
	}
	for answer, want := range map[string]string{"-ERR no\r\n": "", "-WRONGPASS no\r\n": "alice"} {
		if user, refused := a.refused(right, []byte(answer)); user != want || refused != (want != "") {
			t.Errorf("%q refuses %q: %v", answer, user, refused)
		}
	}
	if _, known := a.acceptedAt(right); known {
		t.Error("a forgotten login is known")
	}
	for i := range acceptedUsers + 10 {
		a.remember(credentials{user: fmt.Sprint(i)}, now.Add(time.Duration(i+1)))
	}
	for _, user := range []string{"alice", "5"} {
		if name, _ := a.refused(credentials{user: user}, []byte("-NOAUTH no\r\n")); name != "(unknown)" {
			t.Errorf("%s is remembered", name)
		}
	}
	if len(a.byUser) != acceptedUsers {
		t.Errorf("%d users are remembered", len(a.byUser))
	}
}

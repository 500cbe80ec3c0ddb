package handler

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

const (
	// acceptedUsers is the largest number of users. The user that logged in least
	// recently is forgotten first.
	acceptedUsers = 10_000
	// acceptedPasswords is the largest number for one user: an ACL may give several.
	acceptedPasswords = 4
)

// acceptedLogins remember the logins that the upstream has accepted, so that their
// clients may use locks while the upstream is unreachable. They keep only digests of
// passwords. The salt is known to no other process and written nowhere. Any number of
// goroutines may use them.
type acceptedLogins struct {
	salt [sha256.Size]byte

	mu     sync.Mutex
	byUser loginsByUser
}

// loginsByUser has the logins of each user in the order in which they were accepted.
type loginsByUser map[string][]acceptedLogin

type acceptedLogin struct {
	digest [sha256.Size]byte
	at     time.Time
}

// credentials identify a user with a password at one server. They are no secret.
type credentials struct {
	user   string
	digest [sha256.Size]byte
}

// A sentLogin is a login as a client sent it. It holds the password.
type sentLogin struct {
	credentials
	command []byte // its AUTH; nil: it has sent none
}

func newAcceptedLogins() *acceptedLogins {
	a := &acceptedLogins{byUser: loginsByUser{}}
	rand.Read(a.salt[:])
	return a
}

// credentials makes those of a user at a server. A client that has sent no login has no
// password, which is not the same as an empty one.
func (a *acceptedLogins) credentials(server, user string, password ...[]byte) credentials {
	hash := hmac.New(sha256.New, a.salt[:])
	for _, part := range append([][]byte{[]byte(server), []byte(user)}, password...) {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		hash.Write(size[:])
		hash.Write(part)
	}
	login := credentials{user: user}
	hash.Sum(login.digest[:0])
	return login
}

// sent makes the login in the arguments of AUTH at a server. args is nil if the client has
// sent none.
func (a *acceptedLogins) sent(server string, args [][]byte) sentLogin {
	user := wire.DefaultUser
	switch len(args) {
	case 0:
		return sentLogin{credentials: a.credentials(server, user)}
	case 3:
		user = string(args[1])
	}
	return sentLogin{a.credentials(server, user, args[len(args)-1]), resp.AppendCommand(nil, args...)}
}

// remember notes that the upstream has just accepted a login.
func (a *acceptedLogins) remember(login credentials, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.byUser[login.user]; !known && len(a.byUser) >= acceptedUsers {
		a.byUser.forgetOldest()
	}
	a.byUser.forget(login)
	list := append(a.byUser[login.user], acceptedLogin{login.digest, now})
	a.byUser[login.user] = list[max(0, len(list)-acceptedPasswords):]
}

// acceptedAt returns the time at which the upstream last accepted a login. Its own
// duration reveals nothing about passwords.
func (a *acceptedLogins) acceptedAt(login credentials) (at time.Time, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, accepted := range a.byUser[login.user] {
		if subtle.ConstantTimeCompare(accepted.digest[:], login.digest[:]) == 1 {
			at, known = accepted.at, true
		}
	}
	return at, known
}

// refused forgets a login if the upstream's answer to it is WRONGPASS or NOAUTH. Other errors
// change nothing. user names the user in a log. It is "(unknown)" if the upstream has never
// accepted that user, because the name may be a password.
func (a *acceptedLogins) refused(login credentials, answer []byte) (user string, refused bool) {
	if code := string(resp.ErrorCode(answer)); code != "WRONGPASS" && code != "NOAUTH" {
		return "", false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	user = "(unknown)"
	if len(a.byUser[login.user]) > 0 {
		user = login.user
	}
	a.byUser.forget(login)
	return user, true
}

func (l loginsByUser) forget(login credentials) {
	left := slices.DeleteFunc(l[login.user], func(a acceptedLogin) bool { return a.digest == login.digest })
	if l[login.user] = left; len(left) == 0 {
		delete(l, login.user)
	}
}

// forgetOldest removes the user whose last login is the oldest.
func (l loginsByUser) forgetOldest() {
	oldest, since := "", time.Time{}
	for user, list := range l {
		if last := list[len(list)-1].at; since.IsZero() || last.Before(since) {
			oldest, since = user, last
		}
	}
	delete(l, oldest)
}

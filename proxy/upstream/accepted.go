package upstream

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"redlock-proxy/redlock/resp"
)

const (
	// acceptedUsers is the largest number of users. The user that logged in least
	// recently is forgotten first.
	acceptedUsers = 10_000
	// acceptedPasswords is the largest number for one user: an ACL may give several.
	acceptedPasswords = 4
)

// AcceptedLogins remembers the logins that the upstream has accepted, so that their
// clients may use locks while the upstream is unreachable. It keeps only digests of
// passwords. Their salt is known to no other process and written nowhere. Any number of
// goroutines may use it.
type AcceptedLogins struct {
	salt [sha256.Size]byte

	mu     sync.Mutex
	byUser loginsByUser
}

// A ClientLogin identifies a client's credentials at one server. It is no secret.
type ClientLogin struct {
	User   string
	digest [sha256.Size]byte
}

// NewAcceptedLogins makes an empty one.
func NewAcceptedLogins() *AcceptedLogins {
	a := &AcceptedLogins{byUser: loginsByUser{}}
	rand.Read(a.salt[:])
	return a
}

// Login makes the ClientLogin of a user with a password at a server. said is false if
// the client gave no credentials.
func (a *AcceptedLogins) Login(server, user string, password []byte, said bool) ClientLogin {
	hash := hmac.New(sha256.New, a.salt[:])
	for _, part := range [][]byte{[]byte(server), []byte(user), password} {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		hash.Write(size[:])
		hash.Write(part)
	}
	if said {
		hash.Write([]byte{1})
	}
	login := ClientLogin{User: user}
	hash.Sum(login.digest[:0])
	return login
}

// A SentLogin is a login as a client sent it. It holds the password.
type SentLogin struct {
	ClientLogin
	Command []byte // its AUTH; nil: it has sent none
}

// Sent makes the login in the arguments of AUTH at a server. args is nil if the client has
// sent none. defaultUser is the user of an AUTH without a name.
func (a *AcceptedLogins) Sent(server, defaultUser string, args [][]byte) SentLogin {
	switch len(args) {
	case 0:
		return SentLogin{ClientLogin: a.Login(server, defaultUser, nil, false)}
	case 3:
		return SentLogin{a.Login(server, string(args[1]), args[2], true), resp.AppendCommand(nil, args...)}
	}
	return SentLogin{a.Login(server, defaultUser, args[len(args)-1], true), resp.AppendCommand(nil, args...)}
}

// Remember notes that the upstream has just accepted a login.
func (a *AcceptedLogins) Remember(login ClientLogin, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.byUser.remember(login, now)
}

// Forget removes a login that the upstream no longer accepts.
func (a *AcceptedLogins) Forget(login ClientLogin) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.byUser.forget(login)
}

// AcceptedAt returns the time at which the upstream last accepted a login. Its own
// duration reveals nothing about passwords.
func (a *AcceptedLogins) AcceptedAt(login ClientLogin) (at time.Time, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, accepted := range a.byUser[login.User] {
		if subtle.ConstantTimeCompare(accepted.digest[:], login.digest[:]) == 1 {
			at, known = accepted.at, true
		}
	}
	return at, known
}

// AcceptedWithin is AcceptedAt, but knows only logins accepted less than this time ago.
func (a *AcceptedLogins) AcceptedWithin(age time.Duration, login ClientLogin) (at time.Time, known bool) {
	at, known = a.AcceptedAt(login)
	return at, known && time.Since(at) < age
}

// Refused forgets a login if the upstream's answer to it is WRONGPASS or NOAUTH. Other errors
// change nothing. user names the user in a log. It is "(unknown)" if the upstream has never
// accepted that user, because the name may be a password.
func (a *AcceptedLogins) Refused(login ClientLogin, answer []byte) (user string, refused bool) {
	if code := string(resp.ErrorCode(answer)); code != "WRONGPASS" && code != "NOAUTH" {
		return "", false
	}
	user = "(unknown)"
	if a.Knows(login.User) {
		user = login.User
	}
	a.Forget(login)
	return user, true
}

// Knows tells whether the upstream has accepted any login of this user.
func (a *AcceptedLogins) Knows(user string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.byUser[user]) > 0
}

type acceptedLogin struct {
	digest [sha256.Size]byte
	at     time.Time
}

// loginsByUser has at most acceptedUsers users with acceptedPasswords logins each.
type loginsByUser map[string][]acceptedLogin

func (l loginsByUser) remember(login ClientLogin, now time.Time) {
	if _, known := l[login.User]; !known && len(l) >= acceptedUsers {
		l.forgetOldest()
	}
	l.forget(login)
	list := append(l[login.User], acceptedLogin{login.digest, now})
	l[login.User] = list[max(0, len(list)-acceptedPasswords):]
}

func (l loginsByUser) forget(login ClientLogin) {
	left := slices.DeleteFunc(l[login.User], func(a acceptedLogin) bool { return a.digest == login.digest })
	if l[login.User] = left; len(left) == 0 {
		delete(l, login.User)
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

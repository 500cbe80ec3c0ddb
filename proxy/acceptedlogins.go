package proxy

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"slices"
	"sync"
	"time"
)

const (
	// acceptedUsers is how many users are remembered; the one not seen for longest
	// goes first.
	acceptedUsers = 10_000
	// acceptedPasswords is how many of one user: an ACL may give several.
	acceptedPasswords = 4
)

// acceptedLogins remember whom the upstream has accepted, so that they may use
// locks while it is away. Of a password there is only a digest, with a salt
// that no other process has and that is written nowhere.
type acceptedLogins struct {
	salt [sha256.Size]byte

	mu     sync.Mutex
	byUser map[string][]acceptedLogin
}

type acceptedLogin struct {
	digest [sha256.Size]byte
	at     time.Time
}

func newAcceptedLogins() *acceptedLogins {
	a := &acceptedLogins{byUser: map[string][]acceptedLogin{}}
	rand.Read(a.salt[:])
	return a
}

// digest stands for a login at a server: AUTH's user and password, or nothing
// said at all.
func (a *acceptedLogins) digest(server, user string, password []byte, said bool) (digest [sha256.Size]byte) {
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
	hash.Sum(digest[:0])
	return digest
}

// remember notes that the upstream has just accepted a login.
func (a *acceptedLogins) remember(user string, digest [sha256.Size]byte, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, seen := a.byUser[user]
	if !seen && len(a.byUser) >= acceptedUsers {
		a.forgetOldest()
	}
	known = slices.DeleteFunc(known, func(l acceptedLogin) bool { return l.digest == digest })
	known = append(known, acceptedLogin{digest, now})
	a.byUser[user] = known[max(0, len(known)-acceptedPasswords):]
}

// forgetOldest makes room. The mutex is held.
func (a *acceptedLogins) forgetOldest() {
	oldest, since := "", time.Time{}
	for user, logins := range a.byUser {
		if last := logins[len(logins)-1].at; since.IsZero() || last.Before(since) {
			oldest, since = user, last
		}
	}
	delete(a.byUser, oldest)
}

// forget is for a login that the upstream accepts no more.
func (a *acceptedLogins) forget(user string, digest [sha256.Size]byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	left := slices.DeleteFunc(a.byUser[user], func(l acceptedLogin) bool { return l.digest == digest })
	if len(left) == 0 {
		delete(a.byUser, user)
	} else {
		a.byUser[user] = left
	}
}

// acceptedAt tells when the upstream accepted a login last. How long it takes
// tells nothing of the passwords.
func (a *acceptedLogins) acceptedAt(user string, digest [sha256.Size]byte) (at time.Time, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, login := range a.byUser[user] {
		if subtle.ConstantTimeCompare(login.digest[:], digest[:]) == 1 {
			at, known = login.at, true
		}
	}
	return at, known
}

// knows tells whether the upstream has accepted anybody of that name.
func (a *acceptedLogins) knows(user string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.byUser[user]) > 0
}

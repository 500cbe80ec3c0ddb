package proxy

import (
	"crypto/sha256"
	"crypto/subtle"
	"time"

	"redlock-proxy/proxy/endpoint"
)

// rights are what a user may use: the masters, the upstream, or both.
type rights uint8

const (
	rightLocks    rights = 1 << iota // commands on lock keys
	rightUpstream                    // everything else
	rightBoth     = rightLocks | rightUpstream
)

// rightsByWord are the words of the configuration.
var rightsByWord = map[string]rights{"locks": rightLocks, "upstream": rightUpstream, "both": rightBoth}

// UnmarshalText reads a word of the configuration.
func (r *rights) UnmarshalText(text []byte) error {
	may, known := rightsByWord[string(text)]
	if !known {
		return checkWord(string(text), "locks upstream both")
	}
	*r = may
	return nil
}

func (r rights) String() string {
	for word, means := range rightsByWord {
		if r == means {
			return word
		}
	}
	return "nothing"
}

// defaultUser is Redis's name for who gives no name.
const defaultUser = "default"

// An account is one user of the proxy. It never changes.
type account struct {
	name   string
	may    rights
	open   bool // any password is right, and every client begins as this user
	digest [sha256.Size]byte
	among  *accounts // so that an account of an earlier configuration is known
}

// accounts are all users of one configuration. They never change.
type accounts struct {
	byName map[string]*account
	// atUpstream: the upstream has the users and judges their passwords.
	atUpstream bool
	cache      time.Duration // for how long whom it accepted is accepted while it is away
}

// newAccounts makes the users. Where none is configured everybody is the
// default user; where only named ones are, nobody is.
func newAccounts(auth Auth, cache time.Duration) *accounts {
	a := &accounts{byName: make(map[string]*account, len(auth.Users)+1), atUpstream: auth.Upstream, cache: cache}
	if a.atUpstream {
		return a
	}
	add := func(name string, password endpoint.Secret, may rights) *account {
		user := &account{name: name, may: may, digest: sha256.Sum256([]byte(password)), among: a}
		a.byName[name] = user
		return user
	}
	if auth.Password != "" || len(auth.Users) == 0 {
		add(defaultUser, auth.Password, auth.May).open = auth.Password == ""
	}
	for _, user := range auth.Users {
		add(user.Name, user.Password, user.May)
	}
	return a
}

// accepted is the account of a user whom the upstream has accepted.
func (a *accounts) accepted(name string) *account {
	return &account{name: name, may: rightBoth, among: a}
}

// has tells whether an account is of this configuration.
func (a *accounts) has(user *account) bool { return user.among == a }

// successor is who a user of an earlier configuration is in this one; nil:
// nobody.
func (a *accounts) successor(known *account) *account {
	switch {
	case a.atUpstream != known.among.atUpstream:
		return nil
	case a.atUpstream:
		return a.accepted(known.name)
	}
	return a.byName[known.name]
}

// stranger's digest is that of no password.
var stranger account

// admit returns the user whose name and password these are, nil if there is
// none. How long it takes tells nothing of the passwords.
func (a *accounts) admit(name, password []byte) *account {
	digest := sha256.Sum256(password)
	user, known := a.byName[string(name)]
	if !known {
		user = &stranger
	}
	right := subtle.ConstantTimeCompare(digest[:], user.digest[:]) == 1
	if known && (right || user.open) {
		return user
	}
	return nil
}

// first is who a client is before it has said so; nil: nobody.
func (a *accounts) first() *account {
	if user := a.byName[defaultUser]; user != nil && user.open {
		return user
	}
	return nil
}

// known gives the name of a user, or a word for all others: what stands in the
// place of a name may be a password.
func (a *accounts) known(name []byte) string {
	if user := a.byName[string(name)]; user != nil {
		return user.name
	}
	return "(unknown)"
}

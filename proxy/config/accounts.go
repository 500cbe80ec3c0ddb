package config

import (
	"crypto/sha256"
	"crypto/subtle"
	"time"

	"redlock-proxy/proxy/endpoint"
)

// Rights are what a user may use: the masters, the upstream, or both.
type Rights uint8

const (
	RightLocks    Rights = 1 << iota // commands on lock keys
	RightUpstream                    // everything else
	RightBoth     = RightLocks | RightUpstream
)

// rightsByWord are the words of the configuration.
var rightsByWord = map[string]Rights{"locks": RightLocks, "upstream": RightUpstream, "both": RightBoth}

// UnmarshalText reads a word of the configuration.
func (r *Rights) UnmarshalText(text []byte) error {
	may, known := rightsByWord[string(text)]
	if !known {
		return checkWord(string(text), "locks upstream both")
	}
	*r = may
	return nil
}

func (r Rights) String() string {
	for word, means := range rightsByWord {
		if r == means {
			return word
		}
	}
	return "nothing"
}

// DefaultUser is Redis's name for who gives no name.
const DefaultUser = "default"

// An Account is one user of the proxy. It never changes.
type Account struct {
	Name   string
	May    Rights
	open   bool // any password is right, and every client begins as this user
	digest [sha256.Size]byte
	among  *Accounts // so that an account of an earlier configuration is known
}

// Accounts are all users of one configuration. They never change.
type Accounts struct {
	byName map[string]*Account
	// atUpstream: the upstream has the users and judges their passwords.
	AtUpstream bool
	Cache      time.Duration // for how long whom it accepted is accepted while it is away
}

// NewAccounts makes the users. Where none is configured everybody is the
// default user; where only named ones are, nobody is.
func NewAccounts(auth Auth, cache time.Duration) *Accounts {
	a := &Accounts{byName: make(map[string]*Account, len(auth.Users)+1), AtUpstream: auth.Upstream, Cache: cache}
	if a.AtUpstream {
		return a
	}
	add := func(name string, password endpoint.Secret, may Rights) *Account {
		user := &Account{Name: name, May: may, digest: sha256.Sum256([]byte(password)), among: a}
		a.byName[name] = user
		return user
	}
	if auth.Password != "" || len(auth.Users) == 0 {
		add(DefaultUser, auth.Password, auth.May).open = auth.Password == ""
	}
	for _, user := range auth.Users {
		add(user.Name, user.Password, user.May)
	}
	return a
}

// Accepted is the account of a user whom the upstream has accepted.
func (a *Accounts) Accepted(name string) *Account {
	return &Account{Name: name, May: RightBoth, among: a}
}

// Has tells whether an account is of this configuration.
func (a *Accounts) Has(user *Account) bool { return user.among == a }

// Successor is who a user of an earlier configuration is in this one; nil:
// nobody.
func (a *Accounts) Successor(known *Account) *Account {
	switch {
	case a.AtUpstream != known.among.AtUpstream:
		return nil
	case a.AtUpstream:
		return a.Accepted(known.Name)
	}
	return a.byName[known.Name]
}

// stranger's digest is that of no password.
var stranger Account

// Admit returns the user whose name and password these are, nil if there is
// none. How long it takes tells nothing of the passwords.
func (a *Accounts) Admit(name, password []byte) *Account {
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

// First is who a client is before it has said so; nil: nobody.
func (a *Accounts) First() *Account {
	if user := a.byName[DefaultUser]; user != nil && user.open {
		return user
	}
	return nil
}

// Known gives the name of a user, or a word for all others: what stands in the
// place of a name may be a password.
func (a *Accounts) Known(name []byte) string {
	if user := a.byName[string(name)]; user != nil {
		return user.Name
	}
	return "(unknown)"
}

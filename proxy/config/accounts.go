package config

import (
	"crypto/sha256"
	"crypto/subtle"
	"time"

	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/proxy/wire"
)

// Rights are what a user may use: the masters, the upstream, or both.
type Rights uint8

const (
	RightLocks    Rights = 1 << iota // commands on lock keys
	RightUpstream                    // everything else
	RightBoth     = RightLocks | RightUpstream
)

// rightsByWord has the words of the configuration.
var rightsByWord = map[string]Rights{"locks": RightLocks, "upstream": RightUpstream, "both": RightBoth}

func (r Rights) String() string {
	for word, means := range rightsByWord {
		if r == means {
			return word
		}
	}
	return "nothing"
}

// An Account is one user of the proxy. It never changes.
type Account struct {
	Name   string
	May    Rights
	open   bool // any password is right, and every client begins as this user
	digest [sha256.Size]byte
	among  *Accounts // of which it is one, to recognise accounts of an earlier configuration
}

// Accounts are all users of one configuration. They never change.
type Accounts struct {
	byName map[string]*Account
	// AtUpstream means that the upstream has the users and judges their passwords.
	AtUpstream bool
	Cache      time.Duration // see Config.AuthCache
}

// NewAccounts makes the users. If none is configured, every client is the default user.
// If only named users are configured, there is no default user.
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
		add(wire.DefaultUser, auth.Password, auth.May).open = auth.Password == ""
	}
	for _, user := range auth.Users {
		add(user.Name, user.Password, user.May)
	}
	return a
}

// Accepted makes the account of a user that the upstream has accepted.
func (a *Accounts) Accepted(name string) *Account {
	return &Account{Name: name, May: RightBoth, among: a}
}

// Has tells whether an account belongs to this configuration.
func (a *Accounts) Has(user *Account) bool { return user.among == a }

// Successor returns the account in this configuration for a user of an earlier one, or
// nil if there is none.
func (a *Accounts) Successor(known *Account) *Account {
	switch {
	case a.AtUpstream != known.among.AtUpstream:
		return nil
	case a.AtUpstream:
		return a.Accepted(known.Name)
	}
	return a.byName[known.Name]
}

// unknownAccount's digest matches no password.
var unknownAccount Account

// Admit returns the user with this name and password, or nil if there is none. Its
// duration reveals nothing about passwords.
func (a *Accounts) Admit(name, password []byte) *Account {
	digest := sha256.Sum256(password)
	user, known := a.byName[string(name)]
	if !known {
		user = &unknownAccount
	}
	right := subtle.ConstantTimeCompare(digest[:], user.digest[:]) == 1
	if known && (right || user.open) {
		return user
	}
	return nil
}

// First is the user of a client that has not logged in, or nil if there is none.
func (a *Accounts) First() *Account {
	if user := a.byName[wire.DefaultUser]; user != nil && user.open {
		return user
	}
	return nil
}

// Known returns the name of a user, or one word for all unknown names. A client may send
// a password in place of a name.
func (a *Accounts) Known(name []byte) string {
	if user := a.byName[string(name)]; user != nil {
		return user.Name
	}
	return "(unknown)"
}

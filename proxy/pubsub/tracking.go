package pubsub

import (
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// CLIENT TRACKING goes to the upstream, which sends the invalidations of its own keys. For
// lock keys the proxy does the same: it remembers which of them a client has read. When
// the masters report a change of one, the client gets one invalidation. With REDIRECT
// clients get none for lock keys, because only the upstream knows the other client.

// Tracking is a client's state of CLIENT TRACKING. The zero value is off.
type Tracking struct {
	Mode     *Mode // nil: off
	Redirect int64 // the client to which invalidations go, by the number of its session; 0: to itself

	// Caching means that CLIENT CACHING was sent for the next command. The upstream gets
	// it only if that command goes there; told means that it has got it.
	Caching, told bool
}

// Set sets the mode, nil for off.
func (t *Tracking) Set(mode *Mode) { *t = Tracking{Mode: mode} }

// OfMasters tells whether the masters' invalidations are wanted.
func (t *Tracking) OfMasters() bool { return t.Mode != nil && !t.Mode.Redirected }

// Words are the CLIENT TRACKING that sets this mode at an upstream, or nil if tracking is
// off.
func (t *Tracking) Words() []string {
	if t.Mode == nil {
		return nil
	}
	words := []string{"CLIENT", "TRACKING", "ON"}
	for _, option := range []struct {
		set  bool
		word string
	}{{t.Mode.Broadcast, "BCAST"}, {t.Mode.OptIn, "OPTIN"}, {t.Mode.OptOut, "OPTOUT"}, {t.Mode.NoLoop, "NOLOOP"}} {
		if option.set {
			words = append(words, option.word)
		}
	}
	for _, prefix := range t.Mode.Prefixes {
		words = append(words, "PREFIX", prefix)
	}
	return words
}

// Cache performs CLIENT CACHING with this word. It returns the error, or "".
func (t *Tracking) Cache(word []byte) wire.Error {
	yes, no := wire.IsWord(word, "YES"), wire.IsWord(word, "NO")
	switch {
	case t.Mode == nil:
		return wire.ErrCachingOff
	case yes && !t.Mode.OptIn:
		return wire.ErrCachingYes
	case no && !t.Mode.OptOut:
		return wire.ErrCachingNo
	case !yes && !no:
		return wire.ErrSyntax
	}
	t.Caching, t.told = true, false
	return ""
}

// TellCaching returns the client's CLIENT CACHING if the upstream must get it before the next command, or nil.
func (t *Tracking) TellCaching() []byte {
	if !t.Caching || t.told {
		return nil
	}
	t.told = true
	form := "NO" // only one is allowed in each mode
	if t.Mode.OptIn {
		form = "YES"
	}
	return resp.AppendCommand(nil, "CLIENT", "CACHING", form)
}

// Remembers tells whether to remember the keys that the next command reads.
func (t *Tracking) Remembers() bool {
	switch {
	case !t.OfMasters() || t.Mode.Broadcast:
		return false
	case t.Mode.OptIn:
		return t.Caching
	}
	return !t.Caching
}

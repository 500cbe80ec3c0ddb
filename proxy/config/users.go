package config

import (
	"errors"
	"slices"
	"strings"

	"redlock-proxy/proxy/wire"
)

// users reports contradictions between auth and other keys.
func (r *configReader) users() {
	auth := r.cfg.Auth
	if auth.Upstream {
		if r.cfg.Upstream.Kind == UpstreamNone {
			r.fail("auth", "is set to upstream, but there is no upstream")
		}
		return
	}
	for i := range auth.Users {
		if key := elementKey("auth.users", i); r.sound(key) {
			r.user(key, i)
		}
	}
	if r.has("auth.may") && auth.Password == "" && len(auth.Users) > 0 {
		r.fail("auth.may", "applies to the user default, who does not exist without auth.password")
	}
}

func (r *configReader) user(key string, at int) {
	user := r.cfg.Auth.Users[at]
	if !r.has(key + ".name") {
		r.fail(key, "has no name")
		return
	}
	if user.Name == wire.DefaultUser {
		r.fail(key+".name", "default is the user of auth.password; write that password there")
		return
	}
	if err := checkUserName(user.Name); err != nil {
		r.fail(key+".name", "%s", err)
		return
	}
	if first := slices.IndexFunc(r.cfg.Auth.Users, func(u User) bool { return u.Name == user.Name }); first < at {
		r.fail(key, "%s is already the user on line %d; give each user one entry", user.Name, r.places[elementKey("auth.users", first)])
	}
	if user.Password == "" {
		r.fail(key, "%s has no password; write password, password_file or password_env", user.Name)
	}
}

// checkUserName accepts the names that Redis accepts.
func checkUserName(text string) error {
	switch {
	case text == "":
		return errors.New("is empty")
	case len(text) > 128 || strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c == 0x7f }):
		return errors.New("has a space or a control character in it, or is longer than 128 bytes")
	}
	return nil
}

// describeUsers lists the users with their rights.
func describeUsers(users []User) string {
	texts := make([]string, len(users))
	for i, user := range users {
		texts[i] = user.Name + " (" + user.May.String() + ")"
	}
	return strings.Join(texts, ", ")
}

// usersChanged describes the differences between two lists of users, without secrets. It
// returns "" if there are none.
func usersChanged(old, next []User) string {
	var changes []string
	gone := map[string]User{}
	for _, user := range old {
		gone[user.Name] = user
	}
	for _, user := range next {
		before, known := gone[user.Name]
		delete(gone, user.Name)
		switch {
		case !known:
			changes = append(changes, "added "+user.Name)
		case before.May != user.May:
			changes = append(changes, user.Name+" may use "+before.May.String()+" -> "+user.May.String())
		case before.Password != user.Password:
			changes = append(changes, "another password for "+user.Name)
		}
	}
	for _, user := range old {
		if _, removed := gone[user.Name]; removed {
			changes = append(changes, "removed "+user.Name)
		}
	}
	return strings.Join(changes, ", ")
}

package config

import (
	"errors"
	"slices"
	"strings"

	"redlock-proxy/proxy/wire"
)

// users reports contradictions between auth and other keys.
func (c configChecks) users() {
	auth := c.cfg.Auth
	if auth.Upstream {
		if c.cfg.Upstream.Kind == UpstreamNone {
			c.fail("auth", "is set to upstream, but there is no upstream")
		}
		return
	}
	for i := range auth.Users {
		if key := elementKey("auth.users", i); c.sound(key) {
			c.user(key, i)
		}
	}
	if c.has("auth.may") && auth.Password == "" && len(auth.Users) > 0 {
		c.fail("auth.may", "applies to the user default, who does not exist without auth.password")
	}
}

func (c configChecks) user(key string, at int) {
	user := c.cfg.Auth.Users[at]
	if !c.has(key + ".name") {
		c.fail(key, "has no name")
		return
	}
	if user.Name == wire.DefaultUser {
		c.fail(key+".name", "default is the user of auth.password; write that password there")
		return
	}
	if err := checkUserName(user.Name); err != nil {
		c.fail(key+".name", "%s", err)
		return
	}
	if first := slices.IndexFunc(c.cfg.Auth.Users, func(u User) bool { return u.Name == user.Name }); first < at {
		c.fail(key, "%s is already the user on line %d; give each user one entry", user.Name, c.places[elementKey("auth.users", first)])
	}
	if user.Password == "" {
		c.fail(key, "%s has no password; write password, password_file or password_env", user.Name)
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

// DescribeUsers lists the users with their rights.
func DescribeUsers(users []User) string {
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
	find := func(list []User, name string) *User {
		at := slices.IndexFunc(list, func(u User) bool { return u.Name == name })
		if at < 0 {
			return nil
		}
		return &list[at]
	}
	for _, user := range next {
		switch before := find(old, user.Name); {
		case before == nil:
			changes = append(changes, "added "+user.Name)
		case before.May != user.May:
			changes = append(changes, user.Name+" may use "+before.May.String()+" -> "+user.May.String())
		case before.Password != user.Password:
			changes = append(changes, "another password for "+user.Name)
		}
	}
	for _, user := range old {
		if find(next, user.Name) == nil {
			changes = append(changes, "removed "+user.Name)
		}
	}
	return strings.Join(changes, ", ")
}

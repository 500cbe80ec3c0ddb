package proxy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// readAuth reads who may use the proxy.
func (r *configReader) readAuth(node *yaml.Node, key string) {
	auth := &r.cfg.Auth
	if node.Kind == yaml.ScalarNode && node.Value == "upstream" {
		auth.Upstream = true
		return
	}
	if node.Kind == yaml.ScalarNode {
		r.fail(node.Line, key, "must be the word upstream or a mapping with the keys password, password_file, password_env, may, users")
		return
	}
	may := auth.May.String()
	fields := append(r.secretFields(&auth.Password), r.may(&may), yamlField{name: "users", read: r.readUsers})
	lines := r.mapping(node, key, fields...)
	auth.May = rightsByWord[may]
	if line, given := lines["may"]; given && auth.Password == "" && len(auth.Users) > 0 {
		r.fail(line, joinKey(key, "may"), "is the right of the user default, whom there is not with users and without password")
	}
}

func (r *configReader) may(place *string) yamlField {
	return r.choice("may", place, "locks", "upstream", "both")
}

func (r *configReader) readUsers(node *yaml.Node, key string) {
	if node.Kind != yaml.SequenceNode {
		r.fail(node.Line, key, "must be a list of users such as - {name: app, password_file: /run/secrets/app, may: locks}")
		return
	}
	lines := map[string]int{}
	r.sequence(node, key, func(node *yaml.Node, key string) {
		before := len(r.problems)
		user := User{May: rightBoth}
		may := rightBoth.String()
		fields := append(r.secretFields(&user.Password),
			r.text("name", "a user's name", keep(&user.Name, parseUserName)),
			r.may(&may))
		seen := r.mapping(node, key, fields...)
		if len(r.problems) > before {
			return
		}
		user.May = rightsByWord[may]
		first, twice := lines[user.Name]
		switch _, named := seen["name"]; {
		case !named:
			r.fail(node.Line, key, "has no name")
		case twice:
			r.fail(node.Line, key, "%s is the user of line %d again", user.Name, first)
		case user.Password == "":
			r.fail(node.Line, key, "%s has no password; write password, password_file or password_env", user.Name)
		default:
			lines[user.Name] = node.Line
			r.cfg.Auth.Users = append(r.cfg.Auth.Users, user)
		}
	})
}

// readRuleUsers reads who may use a rule's locks.
func (r *configReader) readRuleUsers(node *yaml.Node, key string, rule *lockRule) {
	const allowed = "must be a list of users' names such as [billing, default]"
	if node.Kind != yaml.SequenceNode || len(node.Content) == 0 {
		r.fail(node.Line, key, allowed)
		return
	}
	r.sequence(node, key, func(node *yaml.Node, key string) {
		name, ok := r.scalar(node, key, "a user's name")
		if !ok {
			return
		}
		if name != defaultUser {
			if _, err := parseUserName(name); err != nil {
				r.fail(node.Line, key, "%s", err)
				return
			}
		}
		rule.users = append(rule.users, name)
	})
}

// checkUsers finds what auth and the other keys do not say alike.
func (r *configReader) checkUsers() {
	auth := r.cfg.Auth
	if auth.Upstream {
		if r.cfg.Upstream.Kind == UpstreamNone {
			r.fail(r.lines["auth"], "auth", "upstream needs an upstream, and there is none")
		}
		return
	}
	known := newAccounts(auth).byName
	for i, rule := range r.cfg.Locks {
		for j, name := range rule.users {
			if key := fmt.Sprintf("locks[%d].users[%d]", i, j); known[name] == nil {
				r.fail(r.places[key], key, "%s is no user of auth", name)
			}
		}
	}
}

// parseUserName takes what Redis would.
func parseUserName(text string) (string, error) {
	switch {
	case text == "":
		return "", errors.New("is empty")
	case text == defaultUser:
		return "", errors.New("default is the user of auth.password; write that password there")
	case len(text) > 128 || strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c == 0x7f }):
		return "", errors.New("has a space or a control character in it, or is longer than 128 bytes")
	}
	return text, nil
}

// describeUsers names the users and their rights.
func describeUsers(users []User) string {
	texts := make([]string, len(users))
	for i, user := range users {
		texts[i] = user.Name + " (" + user.May.String() + ")"
	}
	return strings.Join(texts, ", ")
}

// usersChanged tells, without secrets, how two lists of users differ; "" if
// they do not.
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

package proxy

import (
	"errors"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// readAuth reads who may use the proxy.
func (r *configReader) readAuth(node *yaml.Node, key string) {
	auth := &r.cfg.Auth
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

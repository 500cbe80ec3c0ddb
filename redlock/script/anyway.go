package script

import "regexp"

var (
	callsDelete = regexp.MustCompile(`(?i)call\s*\(?\s*(?:['"]|\[\[)(?:del|unlink|getdel|rename(?:nx)?|[sz]\w+store|geosearchstore|bitop)\b`)
	callsCreate = regexp.MustCompile(`(?i)call\s*\(?\s*(?:['"]|\[\[)(?:\w*set(?:nx|ex)?|h?incr\w*|[sz]add|restore|copy)\b`)
	decides     = regexp.MustCompile(`\b(?:then|do|and|or|repeat|function|assert)\b`)
	comment     = regexp.MustCompile(`--[^\n]*`)
)

// DeletesAnyway tells whether a script deletes a key whoever holds the lock, and takes no lock
// itself but by a rename. That is so if the text decides nothing before its first deletion. A rename deletes its
// source, and a command such as SDIFFSTORE its destination, if the result is empty. A wrong "no" is
// possible, such as for computed names of commands, or if the script looks whether the key exists.
// So is a wrong "yes", which costs two more round trips, and the second try of a script that has deleted
// something.
func DeletesAnyway(text []byte) bool {
	text = comment.ReplaceAll(text, nil)
	first := callsDelete.FindIndex(text)
	return first != nil && !decides.Match(text[:first[0]]) && !callsCreate.Match(text)
}

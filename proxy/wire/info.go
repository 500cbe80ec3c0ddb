package wire

import (
	"bytes"
	"slices"
)

// ShortInfo is the text of INFO without a server. Some clients do not start before they have
// seen loading:0.
func ShortInfo(release string) []byte {
	return []byte("# Server\r\nredis_version:" + release + "\r\nredis_mode:standalone\r\n" +
		"\r\n# Persistence\r\nloading:0\r\n" +
		"\r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\n")
}

// AsksForSection tells whether INFO with these arguments asks for a section that is part of
// the default ones. section is in upper case.
func AsksForSection(args [][]byte, section string) bool {
	for _, arg := range args {
		for _, name := range []string{section, "ALL", "DEFAULT", "EVERYTHING"} {
			if IsWord(arg, name) {
				return true
			}
		}
	}
	return len(args) == 0
}

// ShowRelease replaces the server's version in an INFO text. If release is "", it returns
// the text unchanged.
func ShowRelease(text []byte, release string) []byte {
	const field = "redis_version:"
	if at := bytes.Index(text, []byte(field)); release == "" || at > 0 && text[at-1] != '\n' {
		return text
	}
	return ReplaceField(text, field, release)
}

// ReplaceField replaces what stands between the name of a field and the end of its line, if
// the text has both. It does not change text itself.
func ReplaceField(text []byte, name, value string) []byte {
	before, rest, found := bytes.Cut(text, []byte(name))
	end := bytes.IndexByte(rest, '\r')
	if !found || end < 0 {
		return text
	}
	return slices.Concat(before, []byte(name), []byte(value), rest[end:])
}

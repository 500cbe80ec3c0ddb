package wire

import "bytes"

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
	at := bytes.Index(text, []byte(field))
	if release == "" || at < 0 || at > 0 && text[at-1] != '\n' {
		return text
	}
	from := at + len(field)
	length := bytes.IndexByte(text[from:], '\r')
	if length < 0 {
		return text
	}
	shown := append([]byte{}, text[:from]...)
	shown = append(shown, release...)
	return append(shown, text[from+length:]...)
}

package proxy

import (
	"bytes"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// fallbackVersion is shown while no server has told its own: the one whose
// behaviour this package follows.
const fallbackVersion = "7.0.15"

// performInfo shows the upstream's INFO with the proxy's section behind it, or
// alone where it alone was asked for. Without an upstream there is a short one
// all the same, because some clients do not start before they have seen
// loading:0.
func (s *session) performInfo(cmd wire.Command) {
	if !s.settle() || s.refusedAsRestricted("info") {
		return
	}
	sections := cmd.Args[1:]
	if len(sections) == 1 && wire.IsWord(sections[0], "REDLOCK") {
		s.replyBytes(wire.AppendText(nil, s.redlockSection(nil), s.client.version))
		return
	}
	var text []byte
	if s.tryOpen() != "" {
		text = s.shortInfo()
	} else {
		reply, ok := s.ask(asArray(cmd))
		if !ok {
			return
		}
		if text, ok = resp.ParseBulk(reply); !ok || resp.IsError(reply) {
			s.replyBytes(reply)
			return
		}
		text = showVersion(bytes.Clone(bytes.TrimPrefix(text, []byte("txt:"))), s.server.cfg.version())
	}
	if wantsRedlockSection(sections) {
		if len(text) > 0 {
			text = append(text, "\r\n"...)
		}
		text = s.redlockSection(text)
	}
	s.replyBytes(wire.AppendText(nil, text, s.client.version))
}

func wantsRedlockSection(sections [][]byte) bool {
	for _, section := range sections {
		for _, name := range []string{"REDLOCK", "ALL", "DEFAULT", "EVERYTHING"} {
			if wire.IsWord(section, name) {
				return true
			}
		}
	}
	return len(sections) == 0
}

func (s *session) redlockSection(text []byte) []byte {
	return s.server.cfg.redlockInfo(append(text, "# Redlock\r\n"...))
}

func (s *session) shortInfo() []byte {
	return []byte("# Server\r\nredis_version:" + s.server.shownVersion() + "\r\nredis_mode:standalone\r\n" +
		"\r\n# Persistence\r\nloading:0\r\n" +
		"\r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\n")
}

// showVersion puts a version in the place of the server's own; "" leaves it.
func showVersion(text []byte, version string) []byte {
	const field = "redis_version:"
	at := bytes.Index(text, []byte(field))
	if version == "" || at < 0 || at > 0 && text[at-1] != '\n' {
		return text
	}
	from := at + len(field)
	length := bytes.IndexByte(text[from:], '\r')
	if length < 0 {
		return text
	}
	shown := append([]byte{}, text[:from]...)
	shown = append(shown, version...)
	return append(shown, text[from+length:]...)
}

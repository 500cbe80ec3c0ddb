package handler

import (
	"bytes"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// FallbackVersion is the version in HELLO and INFO while no server's version is known. This
// package follows the behaviour of that version.
const FallbackVersion = "7.0.15"

// performInfo answers the upstream's INFO with the proxy's section behind it. INFO redlock
// gets that section alone. Without an upstream the proxy answers a short INFO, because some
// clients do not start before they have seen loading:0.
func (h *handler) performInfo(cmd wire.Command) {
	if !h.Settle() || h.refusedAsRestricted("info") {
		return
	}
	sections := cmd.Args[1:]
	if len(sections) == 1 && wire.IsWord(sections[0], "REDLOCK") {
		h.ReplyBytes(wire.AppendText(nil, h.redlockSection(nil), h.client.version))
		return
	}
	var text []byte
	if h.TryOpen() != "" {
		text = h.shortInfo()
	} else {
		reply, ok := h.Ask(cmd.AsArray())
		if !ok {
			return
		}
		if text, ok = resp.ParseBulk(reply); !ok || resp.IsError(reply) {
			h.ReplyBytes(reply)
			return
		}
		text = showVersion(bytes.Clone(bytes.TrimPrefix(text, []byte("txt:"))), h.service.Version())
	}
	if wantsRedlockSection(sections) {
		if len(text) > 0 {
			text = append(text, "\r\n"...)
		}
		text = h.redlockSection(text)
	}
	h.ReplyBytes(wire.AppendText(nil, text, h.client.version))
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

func (h *handler) redlockSection(text []byte) []byte {
	return h.service.RedlockInfo(append(text, "# Redlock\r\n"...))
}

func (h *handler) shortInfo() []byte {
	return []byte("# Server\r\nredis_version:" + h.service.shownVersion() + "\r\nredis_mode:standalone\r\n" +
		"\r\n# Persistence\r\nloading:0\r\n" +
		"\r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\n")
}

// showVersion replaces the server's version in an INFO text. If version is "", it returns
// the text unchanged.
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

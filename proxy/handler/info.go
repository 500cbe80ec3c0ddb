package handler

import (
	"bytes"

	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// FallbackVersion is the version in HELLO and INFO while no server's version is known. This
// package follows the behaviour of that version.
const FallbackVersion = "7.0.15"

// performInfo answers the upstream's INFO with the proxy's section behind it. INFO redlock
// gets that section alone. Without an upstream the proxy answers a short INFO.
func (h *Handler) performInfo(_ string, cmd wire.Command, _ route.Route) {
	sections := cmd.Args[1:]
	if len(sections) == 1 && wire.IsWord(sections[0], "REDLOCK") {
		h.ReplyBytes(wire.AppendText(nil, h.redlockSection(nil), h.client.Version))
		return
	}
	var text []byte
	if h.TryOpen() != "" {
		text = wire.ShortInfo(h.service.shownVersion())
	} else {
		reply, ok := h.Ask(cmd.Raw)
		if !ok {
			return
		}
		if text, ok = resp.ParseBulk(reply); !ok || resp.IsError(reply) {
			h.ReplyBytes(reply)
			return
		}
		text = wire.ShowRelease(bytes.Clone(bytes.TrimPrefix(text, []byte("txt:"))), h.service.Version())
	}
	if wire.AsksForSection(sections, "REDLOCK") {
		if len(text) > 0 {
			text = append(text, "\r\n"...)
		}
		text = h.redlockSection(text)
	}
	h.ReplyBytes(wire.AppendText(nil, text, h.client.Version))
}

func (h *Handler) redlockSection(text []byte) []byte {
	return h.service.RedlockInfo(append(text, "# Redlock\r\n"...))
}

package console

import (
	"time"

	"github.com/tidwall/redcon"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/wire"
)

// A reply is written piece by piece. Each array or map says first how many elements
// follow.
type reply struct {
	bytes   []byte
	version wire.Version
}

func (r *reply) array(n int) { r.bytes = redcon.AppendArray(r.bytes, n) }

// fields begins a map of n names, each with its value.
func (r *reply) fields(n int) { r.bytes = wire.AppendMapHeader(r.bytes, n, r.version) }

func (r *reply) text(s string) { r.bytes = redcon.AppendBulkString(r.bytes, s) }

func (r *reply) integer(n int64) { r.bytes = redcon.AppendInt(r.bytes, n) }

func (r *reply) null() { r.bytes = wire.AppendNull(r.bytes, r.version) }

func (r *reply) list(values []string) {
	r.array(len(values))
	for _, value := range values {
		r.text(value)
	}
}

// line is a status reply. s must have one line.
func (r *reply) line(s string) { r.bytes = redcon.AppendString(r.bytes, s) }

func (r *reply) refuse(e wire.Error) { r.bytes = append(r.bytes, e...) }

// The following methods write a field of a map: its name and its value.

func (r *reply) textField(name, value string) {
	r.text(name)
	r.text(value)
}

func (r *reply) integerField(name string, value int64) {
	r.text(name)
	r.integer(value)
}

// timeField writes a null for the zero time.
func (r *reply) timeField(name string, value time.Time) {
	r.text(name)
	if value.IsZero() {
		r.null()
		return
	}
	r.text(config.Timestamp(value))
}

func (r *reply) listField(name string, values []string) {
	r.text(name)
	r.list(values)
}

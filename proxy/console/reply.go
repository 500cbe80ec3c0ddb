package console

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tidwall/redcon"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/wire"
)

// An answer is a value, of which append makes the reply:
//
//   - a string or []string is a text or an array of texts, a line is a status reply;
//   - an int, an int64, a time.Duration (in milliseconds) and a bool (0 or 1) are integers;
//   - a time.Time is a text, or a null if it is zero;
//   - pairs are a map, a list is an array, nil is a null;
//   - a wire.Error and a []byte are whole replies.
type (
	line  string // has one line
	pairs []any  // names, each with its value
	list  struct {
		length int
		at     func(i int) any
	}
)

// MarshalJSON makes an object, whose members are in the order of the pairs.
func (p pairs) MarshalJSON() ([]byte, error) {
	text := []byte("{")
	for i := 0; i < len(p); i += 2 {
		if i > 0 {
			text = append(text, ',')
		}
		value, err := json.Marshal(p[i+1])
		if err != nil {
			return nil, err
		}
		text = append(fmt.Appendf(text, "%q:", p[i]), value...)
	}
	return append(text, '}'), nil
}

// listOf is a list with a value for each item.
func listOf[T any](items []T, show func(i int, item T) any) list {
	return list{len(items), func(i int) any { return show(i, items[i]) }}
}

// appendReply appends the reply that a value stands for.
func appendReply(dst []byte, value any, version wire.Version) []byte {
	switch v := value.(type) {
	case string:
		return redcon.AppendBulkString(dst, v)
	case line:
		return redcon.AppendString(dst, string(v))
	case int:
		return redcon.AppendInt(dst, int64(v))
	case int64:
		return redcon.AppendInt(dst, v)
	case bool:
		return redcon.AppendInt(dst, map[bool]int64{true: 1}[v])
	case time.Duration:
		return redcon.AppendInt(dst, v.Milliseconds())
	case time.Time:
		if !v.IsZero() {
			return redcon.AppendBulkString(dst, config.Timestamp(v))
		}
	case wire.Error:
		return append(dst, v...)
	case []byte:
		return append(dst, v...)
	case []string:
		return appendReply(dst, listOf(v, func(_ int, s string) any { return s }), version)
	case pairs:
		dst = wire.AppendMapHeader(dst, len(v)/2, version)
		for _, part := range v {
			dst = appendReply(dst, part, version)
		}
		return dst
	case list:
		dst = redcon.AppendArray(dst, v.length)
		for i := range v.length {
			dst = appendReply(dst, v.at(i), version)
		}
		return dst
	}
	return wire.AppendNull(dst, version)
}

package script

import "strconv"

// A value is what is known of a Lua value.
type value struct {
	kind   kind
	text   string
	number int64
	word   word
}

type kind uint8

const (
	kindUndefined kind = iota
	kindNil
	kindFalse
	kindTrue
	kindNumber
	kindSomeNumber // an unknown number
	kindText
	kindArgument
	kindContent // the string that the key held at the start
	kindStatus
	kindError
)

func truth(yes bool) value {
	if yes {
		return value{kind: kindTrue}
	}
	return value{kind: kindFalse}
}

func integer(n int64) value { return value{kind: kindNumber, number: n} }

func (v value) truth() bool { return v.kind != kindNil && v.kind != kindFalse }

func (v value) isString() bool {
	return v.kind == kindArgument || v.kind == kindText || v.kind == kindContent
}

// typeName is Lua's name for the value's type.
func (v value) typeName() string {
	switch v.kind {
	case kindNil:
		return "nil"
	case kindFalse, kindTrue:
		return "boolean"
	case kindNumber, kindSomeNumber:
		return "number"
	case kindStatus, kindError:
		return "table"
	}
	return "string"
}

func integerReply(n int64) string { return ":" + strconv.FormatInt(n, 10) + "\r\n" }

package redlock

// A luaValue is what is known of one of Lua's values.
type luaValue struct {
	kind   valueKind
	text   string
	number int64
	word   word
}

type valueKind uint8

const (
	valueUndefined valueKind = iota
	valueNil
	valueFalse
	valueTrue
	valueNumber
	valueSomeNumber // which one is not known
	valueText
	valueWord
	valueAnother // a string other than the owner's
	valueStatus
	valueError
)

func (v luaValue) truth() bool { return v.kind != valueNil && v.kind != valueFalse }

// typeName is what Lua calls the value's type.
func (v luaValue) typeName() string {
	switch v.kind {
	case valueNil:
		return "nil"
	case valueFalse, valueTrue:
		return "boolean"
	case valueNumber, valueSomeNumber:
		return "number"
	case valueStatus, valueError:
		return "table"
	}
	return "string"
}

func truth(yes bool) luaValue {
	if yes {
		return luaValue{kind: valueTrue}
	}
	return luaValue{kind: valueFalse}
}

func integer(n int64) luaValue { return luaValue{kind: valueNumber, number: n} }

func (v luaValue) isString() bool {
	return v.kind == valueWord || v.kind == valueText || v.kind == valueAnother
}

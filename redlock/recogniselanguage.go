package redlock

// The small part of Lua in which locks are released: conditions,
// local variables, calls of commands, and replies. No loop, no function and no
// arithmetic, so that such a script can be followed to its end for each thing
// that its key may hold (recognisetrial.go).

// A statement does what it does in a trial.
type statement interface{ run(*trial) }

// An expression has a value in a trial.
type expression interface{ in(*trial) luaValue }

type (
	luaBlock []statement

	// luaLocal is local name, name = value, value.
	luaLocal struct {
		names  []string
		values []expression
	}
	// luaIf is if, or elseif: otherwise is then one of its own.
	luaIf struct {
		when            expression
		then, otherwise luaBlock
	}
	// luaReturn is return; a nil expression returns nothing.
	luaReturn struct{ of expression }
	// luaDo is a call whose value nobody reads.
	luaDo struct{ call *luaCommand }
)

type (
	luaVariable string
	luaConstant struct{ luaValue }
	luaNot      struct{ of expression }
	luaJunction struct { // and, or
		or          bool
		left, right expression
	}
	luaComparison struct {
		operator    string
		left, right expression
	}
	// luaCommand is redis.call or redis.pcall.
	luaCommand struct {
		caught bool
		name   string
		args   []expression
	}
	// luaReply is {err = text}, {ok = text} and the functions for them.
	luaReply struct {
		err  bool
		text expression
	}
	luaType struct{ of expression }
)

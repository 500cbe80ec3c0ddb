package redlock

import _ "embed"

// Our own Lua scripts go out as EVAL, so that a SCRIPT FLUSH on a master does not matter.
// Their texts are short.
var (
	//go:embed persist.lua
	persistScript string
	//go:embed renew.lua
	renewScript string
	//go:embed delete.lua
	deleteScript string
)

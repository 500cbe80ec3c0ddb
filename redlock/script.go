package redlock

import (
	_ "embed"

	"redlock-proxy/redlock/resp"
)

// A luaScript is one of our own Lua scripts. It goes out as EVAL: the texts are
// short, and so no SCRIPT FLUSH on a master can come between.
type luaScript struct{ text string }

var (
	//go:embed release.lua
	releaseText string
	//go:embed expire.lua
	expireText string
	//go:embed persist.lua
	persistText string

	//go:embed swap.lua
	swapText string
	//go:embed delete.lua
	deleteText string
	//go:embed databases.lua
	databasesText string
	//go:embed mark.lua
	markText string
	//go:embed edit.lua
	editText string
	//go:embed upgrade.lua
	upgradeText string
	//go:embed raise.lua
	raiseText string

	swapScript    = &luaScript{swapText}
	deleteScript  = &luaScript{deleteText}
	markScript    = &luaScript{databasesText + markText}
	editScript    = &luaScript{databasesText + editText}
	upgradeScript = &luaScript{databasesText + upgradeText}
	raiseScript   = &luaScript{raiseText}
	releaseScript = &luaScript{releaseText}
	expireScript  = &luaScript{expireText}
	persistScript = &luaScript{persistText}
)

func (s *luaScript) append(dst []byte, keys [][]byte, args ...[]byte) []byte {
	return resp.AppendEval(dst, s.text, keys, args...)
}

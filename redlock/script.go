package redlock

import (
	_ "embed"

	"redlock-proxy/redlock/resp"
)

// A script is one of our own Lua scripts. It goes out as EVAL: the texts are
// short, and so no SCRIPT FLUSH on a master can come between.
type script struct{ text string }

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

	swapScript    = &script{swapText}
	deleteScript  = &script{deleteText}
	markScript    = &script{databasesText + markText}
	editScript    = &script{databasesText + editText}
	upgradeScript = &script{databasesText + upgradeText}
	raiseScript   = &script{raiseText}
	releaseScript = &script{releaseText}
	expireScript  = &script{expireText}
	persistScript = &script{persistText}
)

func (s *script) append(dst []byte, keys [][]byte, args ...[]byte) []byte {
	return resp.AppendEval(dst, s.text, keys, args...)
}

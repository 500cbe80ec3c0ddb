package redlock

import (
	_ "embed"
	"slices"
	"strconv"
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

	//go:embed watched.lua
	watchedText string
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

	watchedScript = &script{watchedText}
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
	dst = appendArrayHeader(dst, 3+len(keys)+len(args))
	dst = appendBulk(dst, "EVAL")
	dst = appendBulk(dst, s.text)
	dst = appendBulk(dst, strconv.Itoa(len(keys)))
	for _, k := range keys {
		dst = appendBulk(dst, k)
	}
	for _, a := range args {
		dst = appendBulk(dst, a)
	}
	return dst
}

// appendCommand encodes a command as RESP.
func appendCommand[T string | []byte](dst []byte, args ...T) []byte {
	room := 16 // for the header, and for as much before each argument
	for _, a := range args {
		room += 16 + len(a)
	}
	dst = appendArrayHeader(slices.Grow(dst, room), len(args))
	for _, a := range args {
		dst = appendBulk(dst, a)
	}
	return dst
}

func appendArrayHeader(dst []byte, n int) []byte {
	dst = append(dst, '*')
	dst = strconv.AppendInt(dst, int64(n), 10)
	return append(dst, '\r', '\n')
}

func appendBulk[T string | []byte](dst []byte, v T) []byte {
	dst = append(dst, '$')
	dst = strconv.AppendInt(dst, int64(len(v)), 10)
	dst = append(dst, '\r', '\n')
	dst = append(dst, v...)
	return append(dst, '\r', '\n')
}

func decimal(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

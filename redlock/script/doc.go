// Package script tells what a client's Lua script does. It reads the text alone,
// before any server runs it.
//
// # What a caller may rely on
//
// Recognise knows one kind of script: compare-and-delete of one string key, by which
// lock libraries release a lock. The wording does not matter. Recognise follows the
// script to its end four times: the key holds nothing, the owner's value, another
// string, or a value that is no string. The script is a Release only if it never
// writes anything but the deletion of the owner's value, and if its reply tells
// whether it deleted. A wrong "no" only costs time, so anything unusual gets a "no".
//
// Reach finds scripts that reach beyond the keys of a lock, as far as the text shows.
// DeletesAnyway finds those that delete a lock whoever holds it, also as far as that.
//
// Nothing here panics on any text. The work is bounded by the length of the text.
//
// # Whose Lua
//
// The parser is gopher-lua's, not the servers'. That is safe if both read a text as
// the same program, or if one of them rejects it: a text that a server cannot compile
// does nothing there and gets an error. Texts that the two could read differently are
// refused: those with a backslash anywhere (escapes in strings), with a number that is
// not of 1 to 15 digits, or with a reply that is not printable ASCII. Conditions and
// brackets are followed 30 levels deep. A text has at most 4 KiB. The parser keeps its
// stack on the heap, so no text overflows it.
//
// The package is a leaf: it imports nothing of this module.
package script

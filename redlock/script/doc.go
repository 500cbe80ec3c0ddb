// Package script tells what a client's Lua script does, from its text alone and
// before any server runs it.
//
// # What a caller may rely on
//
// Recognise knows one kind of script: compare-and-delete of one string key, as
// lock libraries release a lock, in whatever words. It follows the script to its
// end for each of the four things that the key may hold: nothing, the owner's
// value, another string, and no string. It claims a Release only where the script,
// in every one of them, writes nothing but the deletion of the owner's value, and
// tells by its answer whether it deleted. A wrong "no" merely costs time, so
// whatever is unusual gets one.
//
// Reach says which scripts reach beyond the keys of a lock, as far as their text
// shows it.
//
// Nothing here panics, whatever the text, and the work is bounded by its length.
//
// # Whose Lua
//
// Texts are read by the parser of gopher-lua, which is not the one of the servers.
// That is safe as long as both take a text for the same program, or one of them for
// none: a text that the server does not compile does nothing there, and answers
// with an error. Where they differ otherwise, texts are refused: a backslash
// anywhere, for the escapes in strings; a number that is not of 1 to 15 digits; in
// what a script says, bytes that are not printable ASCII. Conditions and brackets
// are followed 30 levels deep, and a text is at most 4 KiB long. The parser itself
// keeps its stack on the heap, so no text makes it overflow.
//
// The package is a leaf: it imports nothing of this module.
package script

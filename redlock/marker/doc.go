// Package marker is the text of a master's marker: the key in which each master says who it is,
// which set it belongs to, and since when it remembers. It writes and reads that text, the id of
// a set, and the fencing token at the end. Package members has the record of who the masters are.
//
// It decides nothing: package roster does. It reads no clock. Each text that String writes is
// read back by Parse. Parse refuses every other text.
// The scripts in package master edit parts of the text, so a change here needs one there.
package marker

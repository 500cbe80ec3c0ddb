// Package corpus has the commands that the tests compare, and the comparison. The commands
// are text. In examples/ a line at the margin is a command, and below it are examples
// of its arguments, right and wrong ones. In scenarios/ are the commands and scripts of
// lock libraries. A new command or habit of a library is some lines there.
//
// The scripts here do the same as the scripts of lock libraries, in other words.
package corpus

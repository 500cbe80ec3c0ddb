// Package corpus has the commands that the tests compare, and the comparison. A new
// command is a line in one of the examples files, with right and wrong arguments. Commands
// of a lock library are a scenario in the file for their purpose.
//
// The scripts here do the same as the scripts of lock libraries, in other words. The tests
// of redlock read them from here, as text.
package corpus

package child

import "slices"

// StartRedis starts a server with Redis's protocol. program begins its command line. The server keeps nothing on disk, unless
// config says otherwise, and it listens where config says.
func StartRedis(name string, program []string, dir string, config ...string) (*Process, error) {
	args := slices.Concat(program[1:], []string{"--dir", dir, "--save", "", "--appendonly", "no", "--daemonize", "no"}, config)
	return Start(name, program[0], args...)
}

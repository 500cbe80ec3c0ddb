// Handshake does with one of several Go clients the steps that
// handshake_test.go lists, one line each. It is a module of its own, so that
// the product's go.mod lists nothing that only this needs.
//
// Arguments: the client, port, "all" or "locks", a name for the keys, and the
// protocol, password and database, each of which may be "".
package main

import (
	"fmt"
	"log"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

const (
	releaseScript = "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end"
	mine, theirs  = "token-of-the-first-1", "token-of-the-second"
)

// arguments are what the program was called with.
type arguments struct {
	addr, name, password string
	protocol, db         int
}

// client is what one library is made to do. Errors end the program.
type client interface {
	ordinary()
	messages()
	locks()
	close()
}

// libraries are by the names that the test knows them by, each with the
// module whose version is reported.
var libraries = map[string]struct {
	name, module string
	open         func(arguments) client
}{
	"redigo":            {"redigo", "github.com/gomodule/redigo", openRedigo},
	"go-redis 8":        {"go-redis", "github.com/go-redis/redis/v8", openGoRedis8},
	"go-redis 9":        {"go-redis", "github.com/redis/go-redis/v9", openGoRedis9},
	"rueidis":           {"rueidis", "github.com/redis/rueidis", openRueidis},
	"rueidis, no cache": {"rueidis", "github.com/redis/rueidis", openRueidisWithoutCache},
}

func main() {
	log.SetFlags(0)
	library, known := libraries[os.Args[1]]
	if !known {
		log.Fatalf("unknown client %q", os.Args[1])
	}
	args := arguments{addr: "127.0.0.1:" + os.Args[2], name: os.Args[4], password: os.Args[6]}
	args.protocol, _ = strconv.Atoi(os.Args[5])
	args.db, _ = strconv.Atoi(os.Args[7])
	step("client", library.name, versionOf(library.module))
	client := library.open(args)
	if os.Args[3] == "all" {
		client.ordinary()
		client.messages()
	}
	client.locks()
	client.close()
}

func versionOf(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, dependency := range info.Deps {
		if dependency.Path == module {
			return strings.TrimPrefix(dependency.Version, "v")
		}
	}
	return "unknown"
}

func step(words ...any) { fmt.Println(words...) }

func yes(ok bool) string {
	if ok {
		return "yes"
	}
	return "no"
}

// must is for replies without which nothing can go on.
func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		log.Panic(err)
	}
}

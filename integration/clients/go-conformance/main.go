// Conformance is one client of one Go lock library. It does what it is told on
// its standard input, a line at a time; conformance/client_test.go lists the
// words. It is a module of its own, so that the product's go.mod lists nothing
// that only this needs.
//
// Arguments: the port of what it takes for its Redis, and the library.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// client is what a library is made to do. A refusal is false, not an error.
type client interface {
	keys(name string) []string
	acquire(name string, ttl time.Duration) (bool, error)
	wait(name string, ttl, limit time.Duration) (bool, error)
	extend(name string, ttl time.Duration) (bool, error)
	release(name string) (bool, error)
	steal(name string) (bool, error)
	held(name string) (bool, error)
	mine(name string) (bool, error)
}

var errUnsupported = errors.New("unsupported")

// libraries are by the names that the suite knows them by, each with the
// module whose version is reported.
var libraries = map[string]struct {
	module string
	open   func(addr string) client
}{
	"redsync goredis":     {"github.com/go-redsync/redsync/v4", openRedsyncOverGoRedis},
	"redsync redigo":      {"github.com/go-redsync/redsync/v4", openRedsyncOverRedigo},
	"redislock 0.9":       {"redislock09", openRedislock09},
	"redislock 0.10":      {"github.com/bsm/redislock", openRedislock010},
	"rueidislock":         {"github.com/redis/rueidis", openRueidislock},
	"rueidislock noloop":  {"github.com/redis/rueidis", openRueidislockNoLoop},
	"rueidislock nocache": {"github.com/redis/rueidis", openRueidislockWithoutTracking},
	"go-redis":            {"github.com/redis/go-redis/v9", openGoRedis},
	"go-redis RESP2":      {"github.com/redis/go-redis/v9", openGoRedisRESP2},
	"go-redis watchdog":   {"github.com/redis/go-redis/v9", openGoRedisWatchdog},
	"redigo":              {"github.com/gomodule/redigo", openRedigo},
}

func main() {
	log.SetFlags(0)
	library, known := libraries[os.Args[2]]
	if !known {
		log.Fatalf("unknown library %q", os.Args[2])
	}
	locks := library.open("127.0.0.1:" + os.Args[1])
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if words[0] == "version" {
			fmt.Println(versionOf(library.module))
			continue
		}
		fmt.Println(perform(locks, words))
	}
}

func perform(locks client, words []string) string {
	name, ttl := words[1], milliseconds(words, 2)
	switch words[0] {
	case "key":
		return strings.Join(locks.keys(name), " ")
	case "acquire":
		return answer(locks.acquire(name, ttl))
	case "wait":
		return answer(locks.wait(name, ttl, milliseconds(words, 3)))
	case "extend":
		return answer(locks.extend(name, ttl))
	case "release":
		return answer(locks.release(name))
	case "steal":
		return answer(locks.steal(name))
	case "held":
		return answer(locks.held(name))
	case "mine":
		return answer(locks.mine(name))
	}
	return "error unknown word " + words[0]
}

func milliseconds(words []string, at int) time.Duration {
	if at >= len(words) {
		return 0
	}
	n, err := strconv.Atoi(words[at])
	if err != nil {
		log.Fatal(err)
	}
	return time.Duration(n) * time.Millisecond
}

func answer(ok bool, err error) string {
	switch {
	case errors.Is(err, errUnsupported):
		return "unsupported"
	case err != nil:
		return "error " + strings.ReplaceAll(err.Error(), "\n", " ")
	case ok:
		return "yes"
	}
	return "no"
}

func versionOf(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, dependency := range info.Deps {
		if dependency.Path != module {
			continue
		}
		if dependency.Replace != nil {
			dependency = dependency.Replace
		}
		return strings.TrimPrefix(dependency.Version, "v")
	}
	return "unknown"
}

// tlsConfig trusts the authority that the suite names, or is nil if it wants no TLS.
func tlsConfig() *tls.Config {
	file := os.Getenv("REDIS_TLS_CA")
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		log.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return &tls.Config{RootCAs: pool}
}

func limited(limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), limit)
}

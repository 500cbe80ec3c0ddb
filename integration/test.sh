#!/usr/bin/env bash
# Everything that must hold before a change lands: formatting, vet,
# staticcheck, all tests with the race detector, and short fuzz runs.
# Needs redis-server, redis-cli, faketime, php with phpredis and Predis, javac and mvn,
# python3 with pip, node (20 or newer) with npm, and ruby with redis-rb; as root
# on a Debian it installs what is missing.
#
#   integration/test.sh          the whole of it
#   FUZZTIME=1m CAMPAIGN_TIME=10m integration/test.sh
#                                longer fuzzing, more faults
set -euo pipefail
cd "$(dirname "$0")/.."

fuzztime=${FUZZTIME:-3s}

missing=()
have() { command -v "$1" >/dev/null || missing+=("$2"); }
have redis-server redis-server
have redis-cli redis-tools
have faketime faketime
have javac default-jdk-headless
have mvn maven
have python3 python3
python3 -m pip --version >/dev/null 2>&1 || missing+=(python3-pip)
have node nodejs
have npm npm
have ruby ruby
ruby -e 'require "redis"' 2>/dev/null || missing+=(ruby-redis)
php -r 'exit((@include "Predis/autoload.php") === false ? 1 : 0);' 2>/dev/null || missing+=(php-predis)
have php php-cli
if ! command -v php >/dev/null || ! php -m | grep -qx redis; then missing+=(php-redis); fi
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "missing, and cannot be installed here: ${missing[*]} (Debian package names)" >&2
    exit 1
  fi
  echo "== installing ${missing[*]}"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
fi

echo "== gofmt"
unformatted=$(gofmt -l .)
if [ -n "$unformatted" ]; then
  echo "not formatted: $unformatted" >&2
  exit 1
fi

echo "== go vet"
go vet ./...

echo "== staticcheck"
go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
(cd integration/clients/go && go vet ./... && go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...)

echo "== fuzz, $fuzztime each"
grep -rl --include='*_test.go' '^func Fuzz' . | while read -r file; do
  for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
    go test -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" "$(dirname "$file")"
  done
done

echo "== tests"
go test -race -timeout 20m ./...

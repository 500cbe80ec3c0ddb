#!/usr/bin/env bash
# Everything that must hold before a change lands: formatting, vet,
# staticcheck, all tests with the race detector, short fuzz runs, and the image.
# install.sh, which it runs first, says what it needs and installs what is
# missing.
#
#   integration/test.sh          the whole of it
#   FUZZTIME=1m CAMPAIGN_TIME=10m SOAK_TIME=15m integration/test.sh
#                                longer fuzzing, more faults, more of everything
set -euo pipefail
cd "$(dirname "$0")/.."

# A number of runs, for Go 1.26 sometimes takes the end of a time for a failure
# (https://go.dev/issue/75804).
fuzztime=${FUZZTIME:-10000x}

integration/install.sh

staticcheck=honnef.co/go/tools/cmd/staticcheck@v0.8.2
integration/again.sh go run "$staticcheck" -version
for module in . integration/clients/go integration/clients/go-conformance integration/manifests; do
  integration/again.sh go -C "$module" mod download
done

echo "== gofmt"
unformatted=$(gofmt -l .)
if [ -n "$unformatted" ]; then
  echo "not formatted: $unformatted" >&2
  exit 1
fi

# All of vet, and once: go test would run a part of it again for each way to
# build, and is told below not to.
echo "== go vet"
go vet ./...
GOOS=darwin go vet ./...
GOOS=windows go build -o /dev/null .

echo "== staticcheck"
go run "$staticcheck" ./...
for module in integration/clients/go integration/clients/go-conformance integration/manifests; do
  (cd "$module" && go vet ./... && go run "$staticcheck" ./...)
done

echo "== fuzz, $fuzztime each"
grep -rl --include='*_test.go' '^func Fuzz' . | while read -r file; do
  for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
    runs=$fuzztime
    [ "$target" != FuzzSession ] || runs=${FUZZTIME:-2000x} # each of them is a proxy's life
    go test -vet=off -run '^$' -fuzz "^$target\$" -fuzztime "$runs" "$(dirname "$file")"
  done
done

echo "== tests"
# Each package has three times what it needs on a quiet machine.
go test -vet=off -race -timeout 75m ./...

echo "== the image"
integration/container.sh

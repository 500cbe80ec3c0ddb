#!/usr/bin/env bash
# Runs the tests. integration/README.md says what the tiers are for.
#
#   integration/test.sh        the second tier: before a change lands
#   integration/test.sh long   the third tier: before a release; it takes hours
#
# These variables change the third tier:
#
#   FUZZTIME        how long, or how often, each fuzz target runs: 10m or 10000x (an hour in all)
#   CAMPAIGN_TIME   how long the campaign runs (30m)
#   SOAK_TIME       how long the soak runs (30m)
#   REPLIES_TIME    how long replies are looked at, that none reaches another client (1h)
set -euo pipefail
cd "$(dirname "$0")/.."

tier=${1:-servers}
case $tier in
servers | long) ;;
*)
  echo "usage: integration/test.sh [long]" >&2
  exit 2
  ;;
esac
unset REDLOCK_TEST # each run below sets its own tier

# An older Go may fetch the one that go.mod wants. Then it says that one's version.
needed=$(sed -n 's/^go //p' go.mod)
version=$(go env GOVERSION 2>/dev/null) || version=missing
if [ "$version" = missing ] || [ "$(printf '%s\n' "$needed" "${version#go}" | sort -V | head -n 1)" != "$needed" ]; then
  echo "needs Go $needed or newer, and here Go is $version: see https://go.dev/dl" >&2
  exit 1
fi
echo "== $version"

if [ "$(uname -s)" != Linux ]; then
  echo "This tier needs Linux, and this is $(uname -s). The first tier runs instead: go test ./..." >&2
  exec go test ./...
fi

integration/install.sh "$tier"

staticcheck=honnef.co/go/tools/cmd/staticcheck@v0.8.2
integration/again.sh go run "$staticcheck" -version
modules=(integration/clients/go-conformance integration/manifests)
for module in . "${modules[@]}"; do
  integration/again.sh go -C "$module" mod download
done

echo "== gofmt"
unformatted=$(gofmt -l .)
if [ -n "$unformatted" ]; then
  echo "not formatted: $unformatted" >&2
  exit 1
fi

# All of vet, once. go test would repeat a part of it for each way to build, so the
# runs below have -vet=off.
echo "== go vet"
go vet ./...

echo "== staticcheck"
go run "$staticcheck" ./...

# A test whose verdict the race detector changes is in a file that is not built with it.
# A file for the race detector alone could leave an assertion out there.
if grep -rlE --include='*.go' '^//go:build (.*[^!])?race\b' .; then
  echo "these files are built for the race detector only: use //go:build !race, so that their tests run without it" >&2
  exit 1
fi

if grep -rnE --include='*.go' '\.Skip(f|Now)?\(' . | grep -v '^\./integration/layer/'; then
  echo "a test is skipped by package layer, which says how to run it and lists it below" >&2
  exit 1
fi

scratch=$(mktemp -d)
summary=$scratch/summary
export REDLOCK_SKIPPED=$scratch/skipped # package layer adds a line for each skipped test
beside=                                 # a process group
trap '[ -z "$beside" ] || kill -- "-$beside" 2>/dev/null || true; rm -rf "$scratch"' EXIT
failed=0

# run runs a command and keeps its output for the summary. The script goes on after a failure,
# so that one run shows all failures.
run() {
  "$@" 2>&1 | tee -a "$summary" || failed=1
}

# lacking notes a part that cannot run here. Where CI is set, nothing may lack.
lacking() {
  echo "$1" >>"$REDLOCK_SKIPPED"
  [ -z "${CI:-}" ] || failed=1
}

race=-race
if ! command -v gcc >/dev/null; then
  race=
  lacking "the race detector, which needs g++: integration/test.sh"
fi

packages=$(go list ./... | grep -v /integration/)
# The rooms are packages in integration/. They build their proxy with the race detector.
rooms=$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./integration/...)

# The units take processor time and the rooms mostly wait. So they run side by side.
# shellcheck disable=SC2086 # lists of packages
units() {
  local failed=0 steps=$1 mutants=$2 dir tests
  run go test -vet=off -timeout 30m -run '^TestModel' ./redlock/roster -model.steps "$steps"
  for dir in $(grep -rlE --include='*_test.go' '^//go:build .*!race\b' . | xargs -n 1 dirname | sort -u); do
    tests=$(grep -lE '^//go:build .*!race\b' "$dir"/*_test.go | xargs sed -n 's/^func \(Test[A-Za-z0-9_]*\)(.*/\1/p' | paste -sd '|')
    run go test -vet=off -timeout 30m -run "^($tests)\$" "$dir"
  done
  # The simulation and the timelines have one thread, so the race detector finds nothing in them, and makes them ten times
  # slower. Only the replays of the simulation run with it, too.
  run go test -vet=off -timeout 1h -run '^Test(Simulation|Timelines)' ./redlock
  run go test -vet=off $race -p 1 -timeout 2h -skip '^(TestModel|TestTimelines$|TestSimulation(Heals|Deletes|FindsAndShrinks|IsSpecified)?$)' $packages
  echo "== mutants"
  run env -u REDLOCK_TEST -u REDLOCK_SKIPPED go run ./integration/mutants "$mutants"
  return "$failed"
}
export REDLOCK_TEST=$tier
set -m # a process group of its own
if [ "$tier" = servers ]; then
  units 10000000 -changed >"$scratch/units" 2>&1 &
else
  units 100000000 -all >"$scratch/units" 2>&1 &
fi
beside=$!
set +m
renice -n 10 -g "$beside" >/dev/null 2>&1 || true

# shellcheck disable=SC2086 # lists of packages
if [ "$tier" = servers ]; then
  echo "== the rooms over real servers, and beside them the units"
  run go test -vet=off -count=1 -timeout 45m $rooms # go's cache does not see what the rooms run
else
  echo "== other systems and modules"
  run env GOOS=darwin go vet ./...
  run env GOOS=windows go build -o /dev/null .
  for module in "${modules[@]}"; do
    run go -C "$module" vet ./...
    run go -C "$module" run "$staticcheck" ./...
  done
  echo "== what is released"
  run env OUT="$scratch/dist" deploy/build.sh binaries sbom deb
  echo "== the image"
  if [ "$(id -u)" -eq 0 ] && command -v buildah >/dev/null; then
    run integration/container.sh
  else
    lacking "the image, which needs root and buildah: integration/container.sh"
  fi
  echo "== the rooms one at a time, for some measure and some set clocks, and beside them the units"
  run go test -vet=off -count=1 -p 1 -timeout 2h $(grep -v '/campaign$' <<<"$rooms")
  echo "== the campaign and the soak"
  CAMPAIGN_TIME=${CAMPAIGN_TIME:-30m} SOAK_TIME=${SOAK_TIME:-30m} run go test -vet=off -count=1 -v -timeout 24h ./integration/campaign
fi

echo "== the units"
renice -n "$(nice)" -g "$beside" >/dev/null 2>&1 || true
wait "$beside" || failed=1
beside=
cat "$scratch/units"

if [ "$tier" = long ]; then
  targets=$(grep -r --include='*_test.go' '^func Fuzz' . | sed 's|^\(.*\)/[^/]*:func \(Fuzz[A-Za-z0-9_]*\)(.*|\1 \2|')
  share=${FUZZTIME:-$((3600 / $(wc -l <<<"$targets")))s}
  echo "== fuzz, $share each; new inputs are kept in $(go env GOCACHE)/fuzz"
  while read -r dir target; do
    go test -vet=off -run '^$' -fuzz "^$target\$" -fuzztime "$share" "$dir" 2>&1 | tee "$scratch/fuzz" || {
      # At the end of its time a target may fail without an input: https://go.dev/issue/75804
      if grep -q 'context deadline exceeded' "$scratch/fuzz" && ! grep -q 'Failing input' "$scratch/fuzz"; then
        sed -i 's/^--- FAIL:/ended:/; /^FAIL/d' "$scratch/fuzz"
      else
        failed=1
      fi
    }
    cat "$scratch/fuzz" >>"$summary"
  done <<<"$targets"
fi

if [ -s "$REDLOCK_SKIPPED" ]; then
  echo "== skipped, with the number of tests"
  sort "$REDLOCK_SKIPPED" | uniq -c
fi
echo "== summary"
grep -E '^(ok|FAIL|---|panic:|mutants:)|repeat with:' "$summary" || true
exit "$failed"

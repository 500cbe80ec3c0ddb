#!/usr/bin/env bash
# Runs the tests, in tiers. integration/README.md describes the tiers. First it runs
# install.sh, which installs missing programs.
#
#   integration/test.sh          formatting, vet, staticcheck, the unit tests, and
#                                the rooms over real servers with clients in PHP,
#                                Java, Python and Go: ten minutes on two cores
#   integration/test.sh long     everything that must pass before a change lands: also
#                                the race detector, fuzzing, mutants, a long run of the
#                                model, every library, Valkey, the campaign, the soak,
#                                and the image: an hour
#   FUZZTIME=1m CAMPAIGN_TIME=10m SOAK_TIME=15m integration/test.sh long
#                                longer fuzzing, more faults, more of everything
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

integration/install.sh "$tier"

staticcheck=honnef.co/go/tools/cmd/staticcheck@v0.8.2
integration/again.sh go run "$staticcheck" -version
modules=(integration/clients/go integration/clients/go-conformance integration/manifests)
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

if [ "$tier" = long ]; then
  echo "== other systems and modules"
  GOOS=darwin go vet ./...
  GOOS=windows go build -o /dev/null .
  for module in "${modules[@]}"; do
    (cd "$module" && go vet ./... && go run "$staticcheck" ./...)
  done

  # The limit is a number of runs. With a time limit, Go 1.26 sometimes reports the end
  # of the time as a failure (https://go.dev/issue/75804).
  echo "== fuzz, ${FUZZTIME:-10000x} each"
  grep -rl --include='*_test.go' '^func Fuzz' . | while read -r file; do
    for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
      runs=${FUZZTIME:-10000x}
      [ "$target" != FuzzSession ] || runs=${FUZZTIME:-2000x} # each run starts and stops a proxy
      go test -vet=off -run '^$' -fuzz "^$target\$" -fuzztime "$runs" "$(dirname "$file")"
    done
  done

  echo "== the image"
  integration/container.sh
fi

# run runs the go command's tests and keeps the summary lines for the end. It goes on
# after a failure, so that one run shows all failures.
scratch=$(mktemp -d)
summary=$scratch/summary
export REDLOCK_SKIPPED=$scratch/skipped # package layer adds a line for each skipped test
beside=() # process groups
trap 'for g in "${beside[@]}"; do kill -- "-$g" 2>/dev/null || true; done; rm -rf "$scratch"' EXIT
failed=0
run() {
  go test -vet=off "$@" 2>&1 | tee -a "$summary" || failed=1
}

# start_beside does the same, with the lowest priority, beside all that follows. wait_beside
# gives it the usual priority, if it may, and waits.
start_beside() {
  set -m # a process group of its own
  nice -n 19 go test -vet=off "$@" >"$scratch/${#beside[@]}" 2>&1 &
  set +m
  beside+=($!)
}
wait_beside() {
  for g in "${beside[@]}"; do
    renice -n "$(nice)" -g "$g" >/dev/null 2>&1 || true
  done
  for i in "${!beside[@]}"; do
    wait "${beside[i]}" || failed=1
    tee -a "$summary" <"$scratch/$i"
  done
  beside=()
}

# The rooms are packages in integration/. They build their proxy with the race
# detector.
rooms=$(go list -f '{{if .XTestGoFiles}}{{.ImportPath}}{{else if .TestGoFiles}}{{.ImportPath}}{{end}}' ./integration/...)
units=$(go list ./... | grep -v /integration/)

# shellcheck disable=SC2086 # lists of packages
if [ "$tier" = servers ]; then
  echo "== unit tests, and the rooms over real servers"
  export REDLOCK_TEST=servers
  run -count=1 -timeout 30m $units $rooms # go's cache does not see which tier ran
else
  export REDLOCK_TEST=long
  echo "== unit tests, with the race detector"
  # The model and the simulation have their own time and use one processor each. So they
  # run on while the rooms wait. First the go command builds what it needs twice.
  go test -vet=off -race -run '^$' ./redlock || failed=1
  start_beside -timeout 80m -run '^TestModel$' ./redlock/roster -model.steps 100000000
  start_beside -race -timeout 80m -run '^TestSimulation' ./redlock
  run -race -timeout 60m -skip '^TestSimulation' $units
  echo "== the rooms, one at a time, for some measure and some set clocks"
  run -count=1 -p 1 -timeout 60m $rooms
  wait_beside
fi

if [ -s "$REDLOCK_SKIPPED" ]; then
  echo "== skipped, with the number of tests"
  sort "$REDLOCK_SKIPPED" | uniq -c
fi
echo "== summary"
grep -E '^(ok|FAIL|---|panic:)' "$summary" || true
exit "$failed"

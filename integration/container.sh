#!/usr/bin/env bash
# Builds the image from the unchanged Dockerfile, without a container engine and
# without a registry. Runs it, and checks the properties that an operator relies on.
# Stops with an error at the first that is wrong.
#
#   integration/container.sh     as root on Debian 12 or later, with Go
#
# This machine takes the place of the golang image: its Go, its /usr and its root
# certificates, read-only. Its Go must be of the Dockerfile's minor release. Modules come
# from this machine's module cache, and go.sum verifies them. The first run compiles
# for minutes. Later runs use this machine's build cache and take half a minute.
# GOCACHE=$(mktemp -d) builds from nothing.
#
# The build and the run happen in their own namespaces: they take no port, cannot
# reach the network, and leave nothing running. The images are in a temporary
# directory, away from the machine's own.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "container.sh: $*" >&2
  exit 1
}

# --- on this machine ---------------------------------------------------------

prepare() {
  [ "$(id -u)" -eq 0 ] || fail "must run as root"
  command -v go >/dev/null || fail "go is missing"

  local missing=()
  have() { command -v "$1" >/dev/null || missing+=("$2"); }
  have buildah buildah
  have git git
  have ip iproute2
  have pgrep procps
  have readelf binutils
  have redis-cli redis-tools
  [ -s /etc/ssl/certs/ca-certificates.crt ] || missing+=(ca-certificates)
  if [ ${#missing[@]} -gt 0 ]; then
    command -v apt-get >/dev/null || fail "missing: ${missing[*]} (Debian package names)"
    echo "== installing ${missing[*]}"
    integration/again.sh apt-get update -qq
    DEBIAN_FRONTEND=noninteractive integration/again.sh apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
  fi

  base=$(sed -n 's/^ARG BASE=\(golang:[0-9.]*\)$/\1/p' Dockerfile)
  [ -n "$base" ] || fail "the Dockerfile has no line ARG BASE=golang:VERSION"
  local release minor
  release=$(go env GOVERSION)
  minor=$(sed -n 's/^golang:\([0-9]*\.[0-9]*\)\.[0-9]*$/\1/p' <<<"$base")
  case $release in
    "go$minor" | "go$minor".*) ;;
    *) fail "the Dockerfile wants $base, and this machine has $release" ;;
  esac
  integration/again.sh go mod download
  goroot=$(go env GOROOT)
  modules=$(go env GOMODCACHE)/cache/download
  compiled=$(go env GOCACHE)
  mkdir -p "$compiled"
  export base goroot modules compiled
}

# --- in namespaces of its own ------------------------------------------------

store() { buildah --root "$TMPDIR/store" --runroot "$TMPDIR/run" --storage-driver vfs "$@"; }

setting() { store inspect --type image --format "$1" "$image"; }

# expect WHAT WANT GOT
expect() {
  [ "$2" = "$3" ] || fail "$1: want \"$2\", got \"$3\""
  echo "   $1: ${3:-nothing}"
}

# inside NAME COMMAND... runs a command in the container, as its user. With
# mount set, with that as buildah's -v.
inside() {
  local container=$1
  shift
  store run --isolation chroot ${mount:+-v "$mount"} "$container" -- "$@"
}

status() {
  local code=0
  "$@" >/dev/null 2>&1 || code=$?
  echo "$code"
}

# metric NAME prints a metric of the container with the shipped configuration.
metric() {
  exec 3<>"/dev/tcp/$outside/9380"
  printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3
  tr -d '\r' <&3 | sed -n "s/^$1 //p"
  exec 3>&-
}

# start CONTAINER FLAGS... starts it as the image says, and waits until it is healthy.
start() {
  inside "$1" "${entrypoint[@]}" "${@:2}" >"$TMPDIR/log" 2>&1 &
  job=$!
  local deadline=$((SECONDS + 30))
  until inside "$1" "${healthcheck[@]}" 2>/dev/null; do
    if ! kill -0 "$job" 2>/dev/null || [ "$SECONDS" -ge "$deadline" ]; then
      cat "$TMPDIR/log" >&2
      fail "it is not healthy"
    fi
    sleep 0.1
  done
  running=$(pgrep -o -x redlock-proxy)
}

# stop stops it as an engine does, and leaves the exit code in code.
stop() {
  kill -TERM "$running"
  code=0
  wait "$job" || code=$?
}

build() {
  local root=$TMPDIR/golang
  mkdir -p "$root"/{etc/ssl/certs,modules,opt/go,root,tmp,usr}
  cp -a /bin /sbin /lib* "$root"/ # links into /usr
  echo root:x:0:0:root:/root:/bin/sh >"$root/etc/passwd"
  cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
  local container
  container=$(store from scratch)
  store add --quiet "$container" "$root" / >/dev/null
  store config --env PATH=/opt/go/bin:/usr/bin:/bin --env GOTOOLCHAIN=local --env GOPROXY=file:///modules "$container"
  store commit --quiet "$container" "docker.io/library/$base" >/dev/null
  store rm "$container" >/dev/null

  store build --isolation chroot --format docker --pull=false \
    -v /usr:/usr:ro -v "$goroot:/opt/go:ro" -v "$modules:/modules:ro" -v "$compiled:/root/.cache/go-build" \
    --build-arg "COMMIT=$(git rev-parse HEAD 2>/dev/null || true)" -t "$image" .
}

check_image() {
  expect "user" 65532:65532 "$(setting '{{.Docker.Config.User}}')"
  # shellcheck disable=SC2016 # a template's variables
  expect "ports" "6380/tcp 9380/tcp " "$(setting '{{range $port, $_ := .Docker.Config.ExposedPorts}}{{$port}} {{end}}')"
  expect "health check" "[CMD /redlock-proxy -healthcheck]" "$(setting '{{.Docker.Config.Healthcheck.Test}}')"

  expect "version" "$(sed -n 's/^const number = "\(.*\)"$/\1/p' proxy/version.go)" "$(setting '{{index .Docker.Config.Labels "org.opencontainers.image.version"}}')"
  expect "revision" "$(git rev-parse HEAD 2>/dev/null || true)" "$(setting '{{index .Docker.Config.Labels "org.opencontainers.image.revision"}}')"

  local files binary
  files=$(store mount "$shipped")
  binary=$files/redlock-proxy
  expect "files" "/LICENCES.txt /etc/redlock-proxy/demo.yaml /etc/ssl/certs/ca-certificates.crt /redlock-proxy " \
    "$(find "$files" ! -type d -printf '/%P\n' | sort | tr '\n' ' ')"
  expect "writable by its user" "" "$(find "$files" \( -perm /o=w -o ! -user 0 -o ! -group 0 \) -printf '/%P ')"
  expect "program interpreter and needed libraries" "" "$(readelf -ldW "$binary" | grep -E 'INTERP|NEEDED' || true)"
  echo "   size: $(stat -c %s "$binary") bytes the binary, $(store images --format '{{.Size}}' "$image") the image"
  store umount "$shipped" >/dev/null

  local version
  version=$(inside "$shipped" "${entrypoint[@]}" -version)
  echo "   version: $version"
  if [ -d .git ] && [ ! -e .git/objects/info/alternates ]; then # only in a complete repository
    [[ $version =~ commit\ [0-9a-f]{12} ]] || fail "-version does not tell the commit"
  fi
}

check_shipped() {
  expect "without a configuration" 2 "$(status inside "$shipped" "${entrypoint[@]}")"
  expect "health check before the start" 1 "$(status inside "$shipped" "${healthcheck[@]}")"
  start "$shipped" -config demo.yaml
  expect "health check while it runs" 0 "$(status inside "$shipped" "${healthcheck[@]}")"
  expect "user and group of the process" "65532 65532" "$(ps -o uid=,gid= -p "$running" | xargs)"
  local ask=(redis-cli -h "$outside" -p 6380)
  expect "SET lock:x v NX PX 1000" OK "$("${ask[@]}" SET lock:x v NX PX 1000)"
  expect "SET lock:y v NX PX 60000" OK "$("${ask[@]}" SET lock:y v NX PX 60000)"
  expect "SET lock:y w NX PX 60000, held" "" "$("${ask[@]}" SET lock:y w NX PX 60000)"
  expect "SET greeting hello" OK "$("${ask[@]}" SET greeting hello)"
  local before waiting
  before=$(metric redlock_forwarded_commands_total)
  "${ask[@]}" EVAL 'local i = 0; while i < 3e7 do i = i + 1 end; return "done"' 0 >"$TMPDIR/answer" 2>&1 &
  waiting=$!
  until [ "$(metric redlock_forwarded_commands_total)" -gt "$before" ]; do
    kill -0 "$waiting" || fail "its command was over too soon"
    sleep 0.1
  done
  stop
  expect "exit code after SIGTERM" 0 "$code"
  wait "$waiting" || true
  expect "answer to a command that was under way then" "done" "$(cat "$TMPDIR/answer")"
  expect "health check after the end" 1 "$(status inside "$shipped" "${healthcheck[@]}")"
}

check_mounted() {
  cat >"$TMPDIR/config.yaml" <<-'END'
	listen: 0.0.0.0:7000
	admin: 0.0.0.0:7001
	upstream: none
	masters: embedded
	locks: [{match: "mine:*"}]
	auth: {password: mounted}
	END
  chmod 644 "$TMPDIR/config.yaml"
  local mount=$TMPDIR/config.yaml:/etc/redlock-proxy/config.yaml:ro
  start "$mounted"
  expect "health check at the mounted file's address" 0 "$(status inside "$mounted" "${healthcheck[@]}")"
  expect "health check at the shipped file's address" 1 "$(mount='' status inside "$shipped" "${healthcheck[@]}")"
  local ask=(redis-cli -h "$outside" -p 7000)
  expect "PING without the mounted file's password" "NOAUTH Authentication required." "$("${ask[@]}" PING)"
  ask+=(--no-auth-warning -a mounted)
  expect "SET mine:x v NX PX 1000" OK "$("${ask[@]}" SET mine:x v NX PX 1000)"
  sed 's/mine:/moved:/' "$TMPDIR/config.yaml" >"$TMPDIR/changed.yaml"
  cat "$TMPDIR/changed.yaml" >"$TMPDIR/config.yaml" # written in place, because this file is mounted
  expect "reload that would move keys" 1 "$(status inside "$mounted" "${entrypoint[@]}" -reload)"
  expect "reload that may" "configuration reloaded from config.yaml" "$(inside "$mounted" "${entrypoint[@]}" -reload -move-keys | head -n 1)"
  [[ $("${ask[@]}" SET moved:x v NX PX 1000) == TRYAGAIN* ]] || fail "the mounted file's new rule is not in force"
  echo nonsense: 1 >>"$TMPDIR/config.yaml"
  expect "reload of a bad file" 2 "$(status inside "$mounted" "${entrypoint[@]}" -reload)"
  expect "health check with a bad file" 0 "$(status inside "$mounted" "${healthcheck[@]}")"
  expect "connecting to the shipped port" 1 "$(status redis-cli -h "$outside" -p 6380 PING)"
  stop
  expect "exit code after SIGTERM" 0 "$code"
}

examine() {
  image=redlock-proxy:test
  outside=192.0.2.1 # an address of this namespace other than the loopback's
  ip link set lo up
  ip address add "$outside/32" dev lo

  echo "== build from $base"
  build
  mapfile -t entrypoint < <(setting '{{range .Docker.Config.Entrypoint}}{{println .}}{{end}}' | sed '/^$/d')
  mapfile -t healthcheck < <(setting '{{range .Docker.Config.Healthcheck.Test}}{{println .}}{{end}}' | sed -e 1d -e '/^$/d')
  shipped=$(store from "$image")
  mounted=$(store from "$image")
  echo "== the image"
  check_image
  echo "== with the configuration to try it out"
  check_shipped
  echo "== with a mounted configuration"
  check_mounted
  store rm --all >/dev/null
  store rmi --all >/dev/null
}

if [ "${1:-}" = examine ]; then
  examine
  exit
fi

prepare
TMPDIR=$(mktemp -d)
export TMPDIR
inner=
clean() {
  if [ -n "$inner" ]; then
    pkill -KILL -P "$inner" || true # kills the first process of the namespace, and so all of them
    wait "$inner" || true
  fi
  rm -rf "$TMPDIR"
}
trap clean EXIT
trap 'exit 1' HUP INT TERM
unshare --net --mount --pid --mount-proc --fork --kill-child "$BASH" "$PWD/integration/container.sh" examine &
inner=$!
wait "$inner"
inner=
echo "== all of it holds, in $SECONDS s"

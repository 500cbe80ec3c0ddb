#!/usr/bin/env bash
# Installs the missing programs that the tests of a tier need, as root on Debian. It names
# what it cannot install. Where CI is set, it fails then. Elsewhere the tests that need it
# are skipped, and say so. test.sh runs it.
#
#   integration/install.sh [servers | long]
set -euo pipefail
cd "$(dirname "$0")"

tier=${1:-long}

missing=()  # of one kind of test
left_out=() # kinds, with what they miss
refreshed=  # yes: the lists of packages are of now; no: they could not be fetched

have() { command -v "$1" >/dev/null || missing+=("$2"); }
holds() { "${@:2}" >/dev/null 2>&1 || missing+=("$1"); }
php_holds() { holds "$1" php -r "exit((@include '$2') === false ? 1 : 0);"; }

refresh() {
  if [ -z "$refreshed" ]; then
    refreshed=no
    ./again.sh apt-get update -qq && refreshed=yes
  fi
  [ "$refreshed" = yes ] || return 1
  if [[ " $* " == *" valkey-server "* ]] && ! apt-cache show valkey-server >/dev/null 2>&1; then
    # Debian 12 has Valkey only in its backports.
    local backports
    backports=$(./backports.sh) || return 1
    tail -n +2 <<<"$backports" >"/etc/apt/sources.list.d/${backports%%$'\n'*}"
    ./again.sh apt-get update -qq
  fi
}

# kind ends the list of what one kind of test needs: it installs what is missing of it.
kind() {
  if [ ${#missing[@]} -gt 0 ]; then
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
      echo "== installing for $1: ${missing[*]}"
      refresh "${missing[@]}" &&
        DEBIAN_FRONTEND=noninteractive ./again.sh apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null ||
        left_out+=("$1: ${missing[*]}")
    else
      left_out+=("$1: ${missing[*]}")
    fi
  fi
  missing=()
}

# at_least KIND PROGRAM VERSION NEEDED WHERE: Debian 12 has this program in a version that is too old.
at_least() {
  [ "$(printf '%s\n' "$4" "$3" | sort -V | head -n 1)" = "$4" ] || left_out+=("$1: $2 $4 or newer, this is ${3:-missing} ($5)")
}

have g++ g++
kind "the race detector and all rooms"
have redis-server redis-server
have redis-cli redis-tools
kind "all rooms"
migrate=/proc/sys/net/ipv4/tcp_migrate_req # only for listeners with SO_REUSEPORT
[ "$(cat $migrate 2>/dev/null)" = 1 ] || { echo 1 >$migrate; } 2>/dev/null || true # without it one test judges less
have faketime faketime
kind "the campaign"
have systemd-analyze systemd
have promtool prometheus
have lintian lintian
kind "deployment files"
holds haproxy test -x /usr/sbin/haproxy
kind "a balancer"
have php php-cli
holds php-redis php -r 'exit(extension_loaded("redis") ? 0 : 1);'
php_holds php-predis Predis/autoload.php
php_holds php-symfony-lock Symfony/Component/Lock/autoload.php
php_holds php-illuminate-cache Illuminate/Cache/autoload.php
php_holds php-illuminate-redis Illuminate/Redis/autoload.php
php_holds php-illuminate-container Illuminate/Container/autoload.php
kind PHP
have javac default-jdk-headless
have mvn maven
kind Java
have python3 python3
holds python3-pip python3 -m pip --version
kind Python
have node nodejs
have npm npm
kind Node
at_least Node node "$(node -p process.versions.node 2>/dev/null || true)" 20 https://nodejs.org
if [ "$tier" = long ]; then
  have valkey-server valkey-server
  kind Valkey
  have ruby ruby
  holds ruby-redis ruby -e 'require "redis"'
  kind Ruby
  holds libhiredis-dev test -e /usr/include/hiredis/hiredis.h
  kind C++
  at_least Rust cargo "$(cargo --version 2>/dev/null | cut -d' ' -f2 || true)" 1.88 https://rustup.rs
  have chromium chromium
  kind "the browser"
  have buildah buildah
  kind "the image"
fi

if [ ${#left_out[@]} -gt 0 ]; then
  echo "left out, because this is missing and was not installed (names are Debian's packages):" >&2
  printf '  %s\n' "${left_out[@]}" >&2
  [ -z "${CI:-}" ] || exit 1
fi

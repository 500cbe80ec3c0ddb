#!/usr/bin/env bash
# Installs the missing programs that the tests of a tier need, as root on Debian.
# If it may not or cannot, it prints what is missing and fails. test.sh runs it.
#
#   integration/install.sh [servers | long]
set -euo pipefail

tier=${1:-long}

again=$(dirname "$0")/again.sh
missing=()
have() { command -v "$1" >/dev/null || missing+=("$2"); }
holds() { "${@:2}" >/dev/null 2>&1 || missing+=("$1"); }
php_holds() { holds "$1" php -r "exit((@include '$2') === false ? 1 : 0);"; }

have faketime faketime
have g++ g++ # the race detector needs a C compiler
have redis-server redis-server
have redis-cli redis-tools
have systemd-analyze systemd
have promtool prometheus
have javac default-jdk-headless
have mvn maven
have python3 python3
holds python3-pip python3 -m pip --version
have php php-cli
holds php-redis php -r 'exit(extension_loaded("redis") ? 0 : 1);'
php_holds php-predis Predis/autoload.php
php_holds php-symfony-lock Symfony/Component/Lock/autoload.php
php_holds php-illuminate-cache Illuminate/Cache/autoload.php
php_holds php-illuminate-redis Illuminate/Redis/autoload.php
php_holds php-illuminate-container Illuminate/Container/autoload.php
if [ "$tier" = long ]; then
  have valkey-server valkey-server
  have buildah buildah
  have node nodejs
  have npm npm
  have ruby ruby
  holds ruby-redis ruby -e 'require "redis"'
  have chromium chromium
  holds libhiredis-dev test -e /usr/include/hiredis/hiredis.h
fi

if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "missing, and cannot be installed here: ${missing[*]} (Debian package names)" >&2
    exit 1
  fi
  echo "== installing ${missing[*]}"
  "$again" apt-get update -qq
  if [[ " ${missing[*]} " == *" valkey-server "* ]] && ! apt-cache show valkey-server >/dev/null 2>&1; then
    # Debian 12 has Valkey only in its backports.
    backports=$("$(dirname "$0")/backports.sh")
    tail -n +2 <<<"$backports" >"/etc/apt/sources.list.d/${backports%%$'\n'*}"
    "$again" apt-get update -qq
  fi
  DEBIAN_FRONTEND=noninteractive "$again" apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
fi

[ "$tier" = long ] || exit 0

# Debian 12 has these in versions that are too old.
at_least() { # program, version it says, version needed, where to get it
  if [ "$(printf '%s\n' "$3" "$2" | sort -V | head -1)" != "$3" ]; then
    echo "needs $1 $3 or newer, this is ${2:-missing} ($4)" >&2
    exit 1
  fi
}
at_least node "$(node -p process.versions.node)" 20 https://nodejs.org
at_least cargo "$(cargo --version 2>/dev/null | cut -d' ' -f2)" 1.88 https://rustup.rs

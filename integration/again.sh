#!/usr/bin/env bash
# Runs a command that fetches something, and again after a while if that fails:
# what it fetches from may be out of reach for a moment.
for pause in 5 20; do
  "$@" && exit
  sleep "$pause"
done
exec "$@"

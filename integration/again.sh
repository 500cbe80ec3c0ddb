#!/usr/bin/env bash
# Runs a command that downloads something. If it fails, runs it again after a while,
# because the source may be unreachable for a moment.
for pause in 5 20; do
  "$@" && exit
  sleep "$pause"
done
exec "$@"

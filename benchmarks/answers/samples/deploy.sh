#!/usr/bin/env bash
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
target=${1:?"usage: deploy.sh TARGET"}

log() { printf '%s  %s\n' "$(date +%H:%M:%S)" "$*" >&2; }

build() {
  log "building books for $target"
  ( cd "$here" && npm ci --silent && npm run build )
  grep -E '"version": *"[0-9]+\.[0-9]+' package.json | sed -e 's/[",]//g'
}

case "$target" in
  test|live) build ;;
  *) log "unknown target '$target'"; exit 2 ;;
esac

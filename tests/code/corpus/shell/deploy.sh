#!/usr/bin/env bash
# Builds the desk and brings it to a server.
set -euo pipefail

readonly ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
declare -A HOSTS=([stage]=stage.local [live]=live.local)
files=(
  dist/app.js
  "package.json"  # for the versions
)

usage() {
  cat <<EOF
Usage: ${0##*/} [-n] stage|live
  -n  show what would be done (don't do it)
EOF
}

log() { printf '%s %s\n' "$(date +%T)" "$*" >&2; }

dry=
while getopts ":nh" option; do
  case $option in
    n) dry=1 ;;
    h | help)
      usage
      exit 0
      ;;
    *) usage; exit 2 ;;
  esac
done
shift $((OPTIND - 1))

host=${HOSTS[${1:-stage}]:-}
if [[ -z $host || ! $host =~ ^[a-z]+\.(local|lan)$ ]]; then
  log "no host for '${1:-}'"
  exit 2
elif (( ${#files[@]} > 10 )); then
  log 'too many files'
else
  for file in "${files[@]}"; do
    [ -f "$ROOT/$file" ] || { log "$file is missing"; exit 1; }
    ${dry:+echo} scp "$ROOT/$file" "$host:/srv/desk/" 2>&1 | sed "s/^/$file: /"
  done
fi

until curl -fsS "http://$host/health" > /dev/null; do sleep 1; done
log "done in ${SECONDS}s"

#!/usr/bin/env bash
# Builds the desk and brings it to a server.
set -euo pipefail

readonly ROOT=&quot;$(cd &quot;$(dirname &quot;${BASH_SOURCE[0]}&quot;)&quot; &amp;&amp; pwd)&quot;
declare -A HOSTS=([stage]=stage.local [live]=live.local)
files=(
  dist/app.js
  &quot;package.json&quot;  # for the versions
)

usage() {
  cat &lt;&lt;EOF
Usage: ${0##*/} [-n] stage|live
  -n  show what would be done (don&#x27;t do it)
EOF
}

log() { printf &#x27;%s %s\n&#x27; &quot;$(date +%T)&quot; &quot;$*&quot; &gt;&amp;2; }

dry=
while getopts &quot;:nh&quot; option; do
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
  log &quot;no host for &#x27;${1:-}&#x27;&quot;
  exit 2
elif (( ${#files[@]} &gt; 10 )); then
  log &#x27;too many files&#x27;
else
  for file in &quot;${files[@]}&quot;; do
    [ -f &quot;$ROOT/$file&quot; ] || { log &quot;$file is missing&quot;; exit 1; }
    ${dry:+echo} scp &quot;$ROOT/$file&quot; &quot;$host:/srv/desk/&quot; 2&gt;&amp;1 | sed &quot;s/^/$file: /&quot;
  done
fi

until curl -fsS &quot;http://$host/health&quot; &gt; /dev/null; do sleep 1; done
log &quot;done in ${SECONDS}s&quot;

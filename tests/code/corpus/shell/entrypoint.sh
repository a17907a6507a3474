#!/bin/bash
trap 'kill "${pids[@]}" 2>/dev/null' EXIT

function wait_for() {
  local host="$1" port="$2" tries=30
  for ((i = 0; i < tries; i++)); do
    if (echo > "/dev/tcp/$host/$port") &> /dev/null; then
      return 0
    fi
    sleep 1
  done
  echo "nothing listens on $host:$port" >&2
  return 1
}

if [ "$1" = "serve" ]; then
  wait_for "${DB_HOST:-db}" "${DB_PORT:-5432}" || exit 1
  npm run migrate && npm run seed
  if [ -n "$WORKERS" ]; then
    for n in $(seq 1 "$WORKERS"); do
      node worker.js --name "worker-$n" &
      pids+=($!)
    done
  fi
  exec node server.js
fi

select answer in yes no; do
  [[ $answer == y* ]] && break
done < <(printf '1\n')

diff <(sort a.txt) <(sort b.txt) || true
exec "$@"

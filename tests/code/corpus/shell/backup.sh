#!/bin/sh
# Keeps the last seven copies of the database.
set -eu

DIR=${BACKUP_DIR:-/var/backups/desk}
KEEP=7
today=`date +%Y-%m-%d`

die() {
    echo "backup: $1" 1>&2
    exit 1
}

command -v sqlite3 >/dev/null 2>&1 || die "sqlite3 isn't there"
mkdir -p "$DIR"

if [ -e "$DIR/$today.db" ]; then
    die "there is one of today: $DIR/$today.db"
fi

sqlite3 /srv/desk/desk.db <<'SQL'
.timeout 5000
VACUUM INTO '/tmp/desk.db';
SQL
mv /tmp/desk.db "$DIR/$today.db"

count=0
ls -1 "$DIR" | sort -r | while read -r name; do
    count=$((count + 1))
    case "$name" in
        *.db)
            if [ "$count" -gt "$KEEP" ]; then
                rm -f -- "$DIR/$name"
            fi
            ;;
        "" | .*) continue ;;
    esac
done

(
    cd "$DIR"
    sha256sum ./*.db
) > "$DIR/sums.txt"
echo "kept: $(ls "$DIR"/*.db | wc -l)" \
    "in $DIR"

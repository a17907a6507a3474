--- a/backup.sh
+++ b/backup.sh
@@ -1,3 +1,4 @@
 #!/bin/sh
 # Keeps the last seven copies of the database.
 set -eu
 
 DIR=${BACKUP_DIR:-/var/backups/desk}
 KEEP=7
+today=`date +%Y-%m-%d`

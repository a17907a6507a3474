--- a/pool.go
+++ b/pool.go
@@ -1,3 +1,4 @@
 package main
 
 import (
 	"bufio"
 	"fmt"
 	"os"
+	"strings"

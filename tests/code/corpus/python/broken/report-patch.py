--- a/report.py
+++ b/report.py
@@ -1,3 +1,4 @@
 #!/usr/bin/env python3
 """Prints what was sold last week, by shelf."""
 
 import argparse
 import csv
 import sys
+from collections import Counter

--- a/Shapes.java
+++ b/Shapes.java
@@ -1,3 +1,4 @@
 package org.example.shapes;
 
 import java.util.ArrayList;
 import java.util.Comparator;
 import java.util.List;
 import java.util.Map;
+import java.util.stream.Collectors;

--- a/cart.mjs
+++ b/cart.mjs
@@ -1,3 +1,4 @@
 import { readFile, writeFile } from 'node:fs/promises';
 import path from 'node:path';
 
 const FILE = path.join(import.meta.dirname, 'cart.json');
 
 export class Cart {
+  #items = new Map();

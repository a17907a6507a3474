--- a/client.ts
+++ b/client.ts
@@ -1,3 +1,4 @@
 const BASE = process.env.API_URL ?? 'http://localhost:3000';
 
 type Method = 'GET' | 'POST' | 'DELETE';
 type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
 
 export class ApiError extends Error {
+  constructor(

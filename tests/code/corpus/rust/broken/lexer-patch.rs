--- a/lexer.rs
+++ b/lexer.rs
@@ -1,3 +1,4 @@
 //! Cuts a text into tokens.
 
 use std::{collections::HashMap, fmt, iter::Peekable, str::Chars};
 
 #[derive(Debug, PartialEq)]
 pub enum Token<'a> {
+    Name(&'a str),

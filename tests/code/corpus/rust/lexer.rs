//! Cuts a text into tokens.

use std::{collections::HashMap, fmt, iter::Peekable, str::Chars};

#[derive(Debug, PartialEq)]
pub enum Token<'a> {
    Name(&'a str),
    Number(f64),
    Sign(char),
}

pub struct Lexer<'a> {
    text: &'a str,
    chars: Peekable<Chars<'a>>,
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str) -> Self {
        Lexer { text, chars: text.chars().peekable() }
    }

    fn skip(&mut self) {
        while let Some(c) = self.chars.peek() {
            if !c.is_whitespace() && *c != '{' {
                break;
            }
            self.chars.next();
        }
    }
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Name(name) => write!(f, "{name}"),
            Token::Number(n) if n.fract() == 0.0 => write!(f, "{:.0}", n),
            Token::Number(n) => write!(f, "{n}"),
            Token::Sign(c @ ('+' | '-')) => write!(f, " {c} "),
            Token::Sign(c) => write!(f, "'{}'", c),
        }
    }
}

macro_rules! map {
    ($($key:expr => $value:expr),* $(,)?) => {{
        let mut found = HashMap::new();
        $(found.insert($key, $value);)*
        found
    }};
}

pub fn signs() -> HashMap<&'static str, u8> {
    let raw = r#"a "raw" text"#;
    debug_assert!(raw.len() > 3, "{} is short", raw);
    map! { "plus" => b'+', "minus" => b'-', }
}

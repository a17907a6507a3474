"""Patterns of what is valid JSON, token by token, and sure to be meant as it stands."""

import re

BLANKS = r"[ \t\r\n]*+"
NAME = r"[\w$@/ .-]{1,100}+"
"""A key that nothing but a key can be."""
STRING = r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+"'
LITERAL = r"(?:-?(?:0|[1-9]\d{0,14}+)(?:\.\d{1,15}+)?(?:[eE][+-]?\d{1,2})?|true|false|null)"
COMMENT = r"(?://[^\n]*+|\#[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)"
DONE = rf"(?={BLANKS}[,}}\]]|[ \t\r\n]++[/\#])"
"""Behind a value: only its end can come before this."""
LAST = rf"(?:[ \t\r\n]++|{COMMENT})*+[}}\]]"
"""Behind a comma that separates nothing."""
VALID = (
    rf'(?:[ \t\r\n{{\[:]++|"{NAME}"(?={BLANKS}:)|{STRING}{DONE}|,(?!{LAST})|[}}\]](?!{BLANKS}["{{\[])'
    rf"|{LITERAL}{DONE})*+"
)
"""As many tokens as are valid wherever the grammar allows them."""
STRETCH = re.compile(VALID)

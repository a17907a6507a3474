"""What comments say that stand for code: the words of it, in the languages models write comments in."""

import re

_THING = (
    r"(?:code|file|functions?|class|classes|methods?|module|implementations?|imports?|logic|routes?|styles?|html|css"
    r"|jsx"
    r"|script|tests?|handlers?|components?|fields?|config|configuration|definitions?|page|schema|template|content"
    r"|document"
    r"|body|markup|layout|migrations?|queries|statements?|settings|sections?|properties|endpoints?|exports?|models?"
    r"|views?"
    r"|services?|dependencies|variables|constants|types|tables|columns|rules|dockerfile|program|elements?|steps|jobs)"
)
_STAYS = (
    r"(?:unchanged|omitted|(?:remains?|stays?)\b|(?:is|are) (?:unchanged|the same|as|here|below|omitted)\b"
    r"|as (?:before|above)|goes|here\b|the same|same as|\.\.\.|…)"
)
_KEPT = r"(?:stays?|remains?|is|are) (?:exactly )?(?:the same|unchanged|as (?:is|before|it (?:is|was)))"
_OLD = r"(?:existing|previous|original|remaining|unchanged|omitted|other)"
_OMISSION = re.compile(
    # only that: "rest of the code", "... keep the remaining methods ..."
    rf"^\W*(?:(?:keep|add|include|insert|and|continue with) )?(?:the )?(?:rest"
    rf"|remainder) of (?:\w+ ){{0,3}}{_THING}\W*$"
    rf"|\b(?:rest|remainder) of (?:\w+ ){{0,3}}{_THING} {_STAYS}"
    rf"|^\W*(?:the )?(?:rest|everything else|all (?:the )?(?:rest|other \w+)) {_KEPT}"
    r"|(?:\.\.\.|…)\s*(?:the )?(?:existing|previous|other|remaining|rest|same|unchanged|omitted|truncated)\b"
    rf"|\b(?:existing|previous|original|remaining|other) (?:\w+ )?{_THING}\s*"
    r"(?:\.\.\.|…|here\b|unchanged|remains?\b|stays?\b|goes here|omitted|as before|as above)"
    rf"|\b(?:your|actual|real|full) {_THING} (?:goes |comes |is )?here\b|\b{_THING}(?: [\w ]{{1,40}})? goes here\W*$"
    r"|^\W*(?:code|implementation|methods|functions|imports|routes) (?:unchanged|omitted|continues)\W*$"
    r"|\b(?:omitted|truncated|shortened|abbreviated|skipped) for brevity\b"
    r"|^\W*(?:no changes?|unchanged|same as) (?:here|before)\W*$|^\W*same (?:implementation|code|logic) as before\W*$"
    rf"|^\W*[(\[<{{]\W*(?:{_OLD} (?:\w+ ){{0,2}}{_THING}|same as (?:above|below|before)|unchanged"
    rf"|no changes)\W*[)\]>}}]\W*$"
    rf"|^\W*[(\[<{{]\W*(?:the )?(?:rest|remainder) of (?:\w+ ){{0,2}}{_THING}[^)\]>}}]{{0,40}}[)\]>}}]\W*$"
    rf"|^\W*keep (?:the |all )?(?:existing|previous|other) (?:\w+ )?{_THING}(?: (?:as is|here|unchanged))?\W*$"
    r"|^\W*(?:-{2,}|={2,}|\.{3}|…)\s*unchanged\s*(?:-{2,}|={2,}|\.{3}|…)?\W*$"
    r"|^\W*no changes? (?:(?:to|in) the rest\b|below\b)|^\W*\(?(?:code|file) continues\)?\W*$",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(
    r"(?:其余|其他|剩余|原有|现有|之前)的?(?:代码|内容|部分|逻辑|函数|方法|样式)|(?:代码|内容)?保持不变|此处省略|代码省略|省略.{0,4}代码"
    r"|(?:残り|既存)の(?:コード|部分|内容)|(?:コード|以下|以降)は?省略|変更なし"
    r"|^\W*(?:der |die |den )?(?:rest|restliche[rns]?|übrige[rns]?|bestehende[rns]?|vorhandene[rns]?) (?:des |der "
    r"|den )?"
    r"(?:codes?|dateien?|datei|funktionen|klasse|methoden|importe?|styles)(?: (?:bleibt|bleiben|unverändert"
    r"|wie bisher|hier)\b.{0,20})?\W*$"
    r"|^\W*(?:le |la )?reste (?:du|de la|des) (?:code|fichier|page|fonctions|classe)\b.{0,40}$"
    r"|^\W*code (?:existant|précédent|inchangé)\W*$"
    r"|^\W*(?:el )?resto del? (?:la )?(?:código|codigo|archivo|página|clase|funciones)\b.{0,40}$"
    r"|^\W*(?:código|codigo) (?:existente|anterior|sin cambios)\W*$"
    r"|^\W*(?:o )?rest(?:o|ante) do (?:código|codigo|arquivo)\b.{0,40}$"
    r"|^\W*(?:остальной|существующий|предыдущий) код\b.{0,40}$",
    re.IGNORECASE,
)
_UNDONE = re.compile(
    r"\b(?:TODO|FIXME)\b[:\s(-]*(?:implement|add|write|fill|complete|finish|your)|^\W*(?:TODO|FIXME)\W*$"
    r"|^\W*(?:to be )?implement(?:ed)?(?: (?:this|it|me))? (?:later|here)\W*$|^\W*implement (?:this|me)\W*$"
    r"|^\W*implementation (?:here|later|pending)\W*$|^\W*(?:to be|not(?: yet)?) implemented(?: yet)?\W*$"
    r"|^\W*placeholder(?: (?:for (?:the )?(?:real|actual)|implementation|logic|code)\b.{0,60})?\W*$"
    r"|\bin a real(?:-world)? (?:app|application|implementation|system|project|world|scenario)\b,? .{0,40}\b(?:would"
    r"|should)\b"
    r"|^\W*this is where you (?:would|should|can)\b|^\W*(?:similar|repeat|same)(?:ly)? for (?:the )?(?:other"
    r"|remaining|rest)\b",
    re.IGNORECASE,
)
THROWN = re.compile(
    r"\bthrow new (?:\w*Error|\w*Exception)\(\s*[\"'`][^\"'`]{0,40}\bnot (?:yet )?implemented\b"
    r"|\b(?:todo|unimplemented)!\(|\bpanic\(\"(?:todo|not implemented|unimplemented)|\bTODO\(\)",
    re.IGNORECASE,
)
"""Code that only says that it is not written."""
BARE = re.compile(
    rf"^\s*(?:(?:\.\.\.|…)\s*(?:the )?(?:{_OLD}|rest|same)\b[^,;(){{}}]*?\b{_THING}\b[^,;(){{}}]*"
    rf"|(?:\.\.\.|…)\s+(?:{_OLD}|rest|same)\b[^,;(){{}}]*|\[(?:{_OLD}|rest of"
    rf"|same)\b[^\]=]{{0,30}}\b{_THING}\b[^\]=]{{0,30}}\])\s*$",
    re.IGNORECASE,
)
"""A line that is no comment and stands for code all the same; `...rest,` is code itself."""


def stands_for_code(comment: str) -> bool:
    """Whether a comment is put where code was left out."""
    return bool(_OMISSION.search(comment) or _ELSEWHERE.search(comment))


def leaves_undone(comment: str) -> bool:
    """Whether a comment says that something is still to be written."""
    return bool(_UNDONE.search(comment))


def may_leave_undone(text: str) -> bool:
    """Whether a text holds a word of such a comment at all."""
    return bool(re.search(r"todo|fixme|implement|placeholder", text, re.IGNORECASE))

"""Comments that stand in place of code: "rest of the code unchanged", "... existing code ..."."""

import re

THING = (
    r"(?:code|file|functions?|class|classes|methods?|module|implementations?|imports?|logic|routes?|styles?|html|css"
    r"|jsx"
    r"|script|tests?|handlers?|components?|fields?|config|configuration|definitions?|page|schema|template|content"
    r"|document"
    r"|body|markup|layout|migrations?|queries|statements?|settings|sections?|properties|endpoints?|exports?|models?"
    r"|views?"
    r"|services?|dependencies|variables|constants|types|tables|columns|rules|dockerfile|program|elements?|steps|jobs)"
)
OLD = r"(?:existing|previous|original|remaining|unchanged|omitted|other)"
_SAME = (
    r"(?:unchanged|omitted"
    r"|(?:stays?|remains?|is|are) (?:exactly )?(?:the same|unchanged|as (?:is|before|it (?:is|was))))"
)
_LEFT_OUT = r"(?:existing|previous|other|remaining|rest|same|unchanged|omitted|truncated)"
# Each form is the whole comment, or has a mark that people do not write about code that is there: measured on the
# comments of some hundred projects.
_OMISSION = re.compile(
    rf"^\W*(?:(?:keep|add|include|insert|and|continue with) )?(?:the )?(?:rest|remainder) of (?:\w+ ){{0,3}}{THING}"
    rf"(?: (?:{_SAME}|as (?:before|above)|goes here|here))?\W*$"
    rf"|^\W*(?:the )?(?:rest|everything else|all (?:the )?(?:rest|other \w+)) {_SAME}"
    # Between other words dots are a pause ("ignore ... other probably was no timedelta"): they lead, or little follows.
    rf"|^\W*(?:\.\.\.|…)\s*(?:the )?{_LEFT_OUT}\b|(?:\.\.\.|…)\s*(?:the )?{_LEFT_OUT}(?: \w+){{0,2}}\W*$"
    rf"|^\W*(?:keep )?(?:the |all )?{OLD} (?:\w+ )?{THING}"
    rf"\s*(?:\.\.\.|…|as is|here|{_SAME}|as (?:before|above))\W*$"
    r"|^\W*(?:code|implementation|methods|functions|imports|routes) (?:unchanged|omitted|continues)\W*$"
    r"|\b(?:omitted|truncated|shortened|abbreviated|skipped) for brevity\b"
    r"|^\W*same (?:implementation|code|logic) as before\W*$|^\W*\(?(?:code|file) continues\)?\W*$"
    rf"|^\W*[(\[<{{]\W*(?:(?:the )?(?:rest|remainder) of|{OLD}) (?:\w+ ){{0,2}}{THING}\W*[)\]>}}]\W*$"
    r"|^\W*(?:-{2,}|={2,}|\.{3}|…)\s*unchanged\b\W*$|^\W*no changes? (?:(?:to|in) the rest\b|below\b)",
    re.IGNORECASE,
)


def stands_for_code(comment: str) -> bool:
    """Returns whether a comment, without its marks, says that code was left out where it stands."""
    return _OMISSION.search(comment) is not None

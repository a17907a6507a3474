"""What a reviewer's words say outside of the issues: that something is critical, or that the review is not whole."""

import re

from orchestrator.answers.review_words import cells_of, heading_of, plain, says_nothing
from orchestrator.core.finding import Severity


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_SENTENCES = re.compile(r"(?<=[.!?;])\s+")
_NOT = r"(?: ?not|n['’]t)(?: yet)?"
_BAD = r"(?:issue|bug|problem|flaw|vulnerabilit|defect|error|finding|regression|failure|leak|injection|blocker)\w*"
_MERGED = r"(?:merge|ship|shipped|deploy|release|approve|go live|production)(?:d|ed|ing)?\b"
_CHANGE = r"(?:this|it|that|which|(?:change|diff|patch|branch|code|commit|task|work|pull request|pr|mr)(?: as it is)?)"
_LABEL = re.compile(
    r"\W{0,8}(?:rationale\W{1,4})?(?:\d{1,3}[.)]\W{0,4})?(?P<weighed>(?:severity|priority)\W{1,4})?"
    r"(?:critical|blocking|blocker|show-?stopper|must[ -]fix|p0|sev-?0)(?: (?:issue|finding|problem|bug)s?)?"
    r"(?:\s?\([^()]{0,30}\))?\s?(?:[:：)\]|]|[—–-]\s|(?(weighed)\W*$|(?!)))[\s)\]:]*(?P<rest>.*)",
    re.IGNORECASE,
)
"""`Critical: …`, `[P0] …`, `Severity: critical`."""
_OTHER_COUNTS = re.compile(r"\W+(?:major|minor|high|medium|low|p[1-4]|nits?)\b.*", re.IGNORECASE)
"""Behind `Critical: 0` in a line that counts the issues of every severity."""
_NO_MERGE = re.compile(
    # What must not be merged is the change, not two carts of the shop: so only at a beginning or behind such a word.
    rf"(?:^\W*|[,;:—–-]\s+|\b(?:and|so|therefore|hence|thus)\s+|\b{_CHANGE}\s+)(?:"
    + "|".join(
        (
            rf"(?:must|should|can|may|shall){_NOT} (?:be )?{_MERGED}(?! (?:twice|again|into|with)\b)",
            rf"(?:do{_NOT}|never) {_MERGED}",
            rf"(?:is|are){_NOT} (?:safe|ready|fit|ok|okay) (?:to|for) (?:be )?{_MERGED}",
            rf"(?:not|un)(?:safe| safe| ready| fit) (?:to|for) (?:be )?{_MERGED}",
            rf"(?:has to|have to|must|needs? to|should) be \w+ before {_MERGED}",
            r"blocks? (?:the )?(?:merge|release)\b",
        )
    )
    + ")",
    re.IGNORECASE,
)
_NOUN = _any(
    rf"\bcritical (?:\w+ ){{0,2}}?{_BAD}",
    rf"\bp0 {_BAD}",
    r"\b(?:is|are|has|have|found|as) (?:an?|the|one|two|three|\d+) p0s?\b(?! (?:stor|task|ticket|feature))",
    r"\b(?:is|are|remains?|as|has|have|found|one|two|three|[1-9]) (?:still )?(?:an? |the |one |two |three |[1-9] )?"
    r"(?:(?:merge|release|hard|real|clear|absolute|security|open)[ -]){0,2}(?:blockers?|show-?stoppers?)\b"
    r"(?! (?:of|for) )",
    r"\b(?:this|it|that|which|issue|bug|finding|problem|flaw|leak|vulnerability|injection) is (?:\w+ly )?critical\b"
    r"(?! (?:for|to|path|that)\b)",
)
_DENIED = _any(
    r"\b(?:no|not|none|nothing|never|without|zero|0|neither|nor|non|free of|any|if|would)\b|n['’]t\b",
    r"\b(?:prevent\w*|avoid\w*|former|previous(?:ly)?|earlier)\b",
)
_SETTLED = _any(r"\b(?:fix(?:es|ed|ing)?|resolv\w+|address\w+|remov\w+|clos(?:es|ed)|gone|mend\w*|solv\w+)\b")


_QUOTED_LABEL = re.compile(
    r"`[^`\n]{0,20}\b(?:critical|block(?:ing|er)|show-?stopper|must[ -]fix|p0|sev-?0|severity|priority|merge)\b"
    r"[^`\n]{0,20}`(?=\s+(?:is|are|was|were|has|have|had|means?|stands?|appears?|must|should|may|can|will|does)\b)",
    re.IGNORECASE,
)
"""A label that the sentence speaks of: `` `Critical:` is read in any case``; one that it has stands before a claim."""


def says_critical(text: str, then: str = "") -> bool:
    """Returns whether a line calls something critical or says that the change must not be merged.

    `then` is the line behind it, which a label that stands alone speaks of.
    """
    cells = cells_of(text)
    if cells:
        levels = [found.severity if (found := heading_of(cell)) is not None else None for cell in cells]
        others = [cell for cell, level in zip(cells, levels, strict=True) if level is None]
        return Severity.CRITICAL in levels and not all(says_nothing(cell) for cell in others)
    return any(_is_critical(one, then) for one in _SENTENCES.split(plain(_QUOTED_LABEL.sub("it", text))))


def _is_critical(sentence: str, then: str) -> bool:
    label = _LABEL.match(sentence)
    if label is not None:
        rest = label["rest"] if label["rest"].strip() else then
        return bool(label["weighed"]) or not (says_nothing(_OTHER_COUNTS.sub("", rest)) or _SETTLED.match(rest))
    if _NO_MERGE.search(sentence):
        return True
    noun = _NOUN.search(sentence)
    return noun is not None and not _DENIED.search(sentence[: noun.start()]) and not _SETTLED.search(sentence)


_WE = (
    r"(?:^\W*|\b(?:i|we|reviewer)\b[ ,]+(?:(?:was|am|were|are|have been) )?|\b(?:i|we)['’](?:m|re|ve) )(?:still |yet )?"
)
_UNABLE = rf"(?:(?:unable|not able) to|could{_NOT}|can(?:not| not|['’]t)|did{_NOT}|(?:have ?)?(?:not|n['’]t)(?: yet)?)"
_SEE = (
    r"(?:actually |fully |yet )?(?:read|see|saw|view|access|open|review|inspect|verify|check|load|find|examine|assess"
    r"|receive|get)"
)
_ALL = r"(?:(?:all|any|most|every|its|parts?|a|the|this|your|of|whole|full|actual|rest|remaining|changed) ){0,5}"
_DIFF = r"(?:diffs?|patch(?:es)?|changes?|code|files?|contents?|repository|pull request|implementation|rest)\b"
_GIVEN = r"(?:provided|included|attached|given|shown|supplied)\b"
_GAP = _any(
    rf"{_WE}{_UNABLE} {_SEE}(?:ed|n)? {_ALL}{_DIFF}",
    rf"\b(?:diff|patch|changes?|changed code|code change) (?:itself |themselves )?(?:was|were|is|are|has|have){_NOT} "
    rf"(?:been )?{_GIVEN}",
    rf"\b(?:diff|patch|changes?) (?:itself |themselves )?(?:could|can){_NOT} be (?:read|seen|loaded|opened|viewed)\b",
    r"\b(?:diff|patch) (?:was|is|seems|appears) (?:to be )?(?:missing|truncated|cut off|unavailable|empty)\b",
    rf"\bno (?:diff|patch|code|changes?) (?:(?:was|were|is|are|has been|have been) )?{_GIVEN}",
    rf"\bwithout (?:seeing|having seen|access to|being able to (?:see|read)) {_ALL}{_DIFF}",
    rf"{_WE}(?:have ?)?(?:not|n['’]t)(?: yet)? (?:finished|completed)\b",
    r"\b(?:not|n['’]t)(?: yet)? (?:finished|completed|done)(?: with)? (?:review|the review|this review|my review)",
    r"\b(?:the|this|my) review (?:is|was|remains) (?:still )?(?:not(?: yet)? (?:finished|complete)"
    r"|unfinished|incomplete|partial|in progress|ongoing|preliminary)",
    r"^\W*(?:unfinished|incomplete|partial|preliminary) review\b|^\W*to be continued\b",
    r"\b(?:i|we) (?:still )?(?:have|need) (?:still )?to (?:review|read|look at|check) (?:the )?(?:rest|remaining)",
    r"\b(?:i|we)(?: have|['’]ve)? (?:only|just) (?:reviewed|read|looked at|checked|saw|seen) (?:a |the )?"
    r"(?:parts?|first|half|some|beginning)\b",
    r"\b(?:i|we) ran out of |^\W*ran out of ",
    r"\b(?:i|we)(?: will|['’]ll) (?:continue|finish) (?:the|this|my|reviewing|with)\b",
)


def admits_gap(text: str) -> bool:
    """Returns whether a line says that the review is unfinished or that its writer could not see the change."""
    return any(_GAP.search(one) for one in _SENTENCES.split(plain(text)))


_GOES_BACK = re.compile(
    r"\W*(?:but|however|except|although|though|unless|provided|pending|conditional\w*|only (?:if|when|once|after))\b",
    re.IGNORECASE,
)


def goes_back(text: str) -> bool:
    """Returns whether a line behind a Yes begins with what takes it back."""
    return _GOES_BACK.match(plain(text)) is not None


_TURN_END = re.compile(
    r"(?:(?:<\|[a-z_]{2,40}\|>|</s>|<(?:end_of_turn|end_of_text|end_of_utterance|eos|eot|im_end)>"
    r"|<[｜|][^<>\n]{2,40}[｜|]>|\[/INST\]|\[EOS\])[ \t]*(?:(?:assistant|user|system|model)\b)?[ \t]*)+$",
    re.IGNORECASE | re.MULTILINE,
)


def without_turn_ends(text: str) -> str:
    """Returns the text without the tokens that end a model's turn, which some servers leave at the end of a line."""
    return _TURN_END.sub("", text)

"""The analyst's choice of prompts, held against those that were offered."""

from collections.abc import Collection, Mapping

from rapidfuzz import process

from orchestrator.domain.findings import Finding, Where, major, minor


def read_triage(value: object, offered: Collection[str]) -> tuple[tuple[str, ...] | None, list[Finding]]:
    """Ids of the prompts that were picked, each once, in order; unknown ones are dropped and told.

    None, with a major finding, when the answer has no list of them or names none that was offered.
    """
    told = value.get("prompts") if isinstance(value, Mapping) else None
    if not isinstance(told, list):
        fix = "Answer with one JSON object that has a list of ids in `prompts`."
        return None, [major("triage.shape", "the answer has no list of prompts", fix=fix)]
    by_word = {name.casefold(): name for name in offered}
    picked, findings = [], []
    for number, name in enumerate(told):
        word = name.strip().strip("`") if isinstance(name, str) else ""
        known = word if word in offered else by_word.get(word.casefold())
        if known is not None:
            picked.append(known)
            continue
        near = process.extractOne(word, sorted(offered)) if word else None
        message = f"there is no prompt {str(name)[:80]!r}, it is dropped"
        fix = f"Name prompts by the ids they are offered with{f', such as {near[0]}' if near else ''}."
        findings.append(minor("triage.unknown_prompt", message, where=Where(field=f"prompts[{number}]"), fix=fix))
    if not picked:
        fix = "Pick at least one prompt, by the id it is offered with."
        return None, [*findings, major("triage.none", "no prompt that was offered is picked", fix=fix)]
    return tuple(dict.fromkeys(picked)), findings

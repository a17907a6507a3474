"""The architecture record as prompt text."""

from orchestrator.domain.record import ArchitectureRecord
from orchestrator.prompts.budget import BUDGET_TOKENS, ContextBlock, fit
from orchestrator.prompts.project import endpoint_line, table_line


def render_record(record: ArchitectureRecord, budget_tokens: int = BUDGET_TOKENS) -> str:
    """Locked conventions first, then open TODOs with their ids, then schema, endpoints and designs; each names the
    story it comes from. "" for an empty record. When the room is short they are served in this order."""
    conventions = [f"{line.text} ({line.story})" for line in record.conventions]
    endpoints = [f"{endpoint_line(entry)} ({story})" for story, entry in record.endpoints]
    parts = (
        ("Locked conventions (a story that needs another is a conflict)", conventions, 4),
        ("Open TODOs", [f"{todo.id}: {todo.text}" for todo in record.todos], 3),
        ("Tables of the finished stories", [f"{table_line(table)} ({story})" for story, table in record.tables], 2),
        ("Endpoints of the finished stories", endpoints, 2),
        ("Designs of the finished stories", [f"{line.text} ({line.story})" for line in record.design], 1),
    )  # fmt: skip
    blocks = [
        ContextBlock(name=heading, text="\n".join((f"{heading}:", *(f"- {line}" for line in lines))), weight=weight)
        for heading, lines, weight in parts
        if lines
    ]
    return fit(blocks, budget_tokens)

"""Answers: from a model's text to a value that can be trusted, or an honest refusal."""

from orchestrator.answers.extract import extract
from orchestrator.answers.result import Extraction, Repair, Status

__all__ = ["Extraction", "Repair", "Status", "extract"]

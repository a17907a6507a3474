"""What a run keeps to itself: the secrets it was started with, and the names that stand for secrets in prompts."""

from orchestrator.adapters.state_folder import StateFolder
from orchestrator.domain.masking import Masks
from orchestrator.domain.redaction import secrets_of
from orchestrator.settings import Environment


def masks_of(folder: StateFolder, environment: Environment) -> Masks:
    """The names for secrets of this state folder: the same in every process that works in it. Blocks."""
    return Masks(key=folder.mask_key(), known=secrets_of(environment.variables))

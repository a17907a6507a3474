"""Settings: the model and its loader."""

from orchestrator.settings.load import Environment, load, packaged
from orchestrator.settings.model import Settings

__all__ = ["Environment", "Settings", "load", "packaged"]

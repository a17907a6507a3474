"""Settings: the model and its loader."""

from orchestrator.settings.load import Environment, load, packaged
from orchestrator.settings.model import Policies, Settings

__all__ = ["Environment", "Policies", "Settings", "load", "packaged"]

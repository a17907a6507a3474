"""Settings: the model and its loader."""

from orchestrator.settings.load import Environment, load, packaged
from orchestrator.settings.model import Policies, PriceSettings, ProviderName, Settings

__all__ = ["Environment", "Policies", "PriceSettings", "ProviderName", "Settings", "load", "packaged"]

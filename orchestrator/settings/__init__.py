"""Settings: the model and its loader."""

from orchestrator.settings.load import (
    Environment,
    find_config,
    forget_secrets,
    is_stream,
    load,
    named_settings,
    packaged,
    process_variables,
)
from orchestrator.settings.model import (
    BudgetSettings,
    PriceSettings,
    ProviderName,
    RequestSettings,
    Settings,
    WireFormat,
    WireStructured,
)
from orchestrator.settings.policies import Policies
from orchestrator.settings.sections import AnalysisSettings

__all__ = [
    "AnalysisSettings",
    "BudgetSettings",
    "Environment",
    "Policies",
    "PriceSettings",
    "ProviderName",
    "RequestSettings",
    "Settings",
    "WireFormat",
    "WireStructured",
    "find_config",
    "forget_secrets",
    "is_stream",
    "load",
    "named_settings",
    "packaged",
    "process_variables",
]

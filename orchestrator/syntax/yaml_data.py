"""A YAML text as plain data."""

from typing import Any

import yaml

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DEPTH = 40
_OPENS, _CLOSES = (yaml.MappingStartEvent, yaml.SequenceStartEvent), (yaml.MappingEndEvent, yaml.SequenceEndEvent)


def load_yaml(text: str) -> object:
    """The one document of `text`. Raises ValueError for what is no YAML, or is nested too deeply to be built."""
    try:
        depth = 0
        for event in yaml.parse(text, Loader=_LOADER):
            depth += isinstance(event, _OPENS) - isinstance(event, _CLOSES)
            if depth > _DEPTH:
                raise ValueError("it is nested too deeply")
        return yaml.load(text, Loader=_LOADER)  # the safe loader: plain data only
    except yaml.YAMLError as error:
        raise ValueError(f"it is no YAML: {str(error)[:200]}") from error

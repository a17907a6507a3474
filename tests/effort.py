"""How many examples hypothesis draws: few in `make test`, as many as a test names in `make soak`."""

from hypothesis import settings

QUICK = 25
"""Examples of the profile `quick`, the default."""


def is_quick() -> bool:
    """Returns whether this is `make test` rather than `make soak`."""
    return settings.get_current_profile_name() == "quick"


def examples(thorough: int) -> int:
    """Returns how many examples a test draws that wants `thorough` of them when there is time."""
    return min(thorough, QUICK) if is_quick() else thorough

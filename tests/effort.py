"""How many examples hypothesis draws: few in `make test`, as many as a test names in `make soak`."""

from hypothesis import settings

QUICK = 25
"""Examples of the profile `quick`, the default."""


def examples(thorough: int) -> int:
    """Returns how many examples a test draws that wants `thorough` of them when there is time."""
    return min(thorough, QUICK) if settings.get_current_profile_name() == "quick" else thorough

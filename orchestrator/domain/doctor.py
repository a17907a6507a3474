"""What `doctor` looks at: one row per question about this machine."""

from orchestrator.domain.base import Value


class DoctorRow(Value):
    """One thing that was looked at."""

    name: str
    group: str
    expected: str
    happened: str
    """What is there instead, or the same; never a key or a password."""
    ok: bool
    """Whether a run can do with it. What a run needs only at times is said in `todo` and is no failure."""
    todo: str = ""
    """What a person does about it; not empty where `ok` is False."""

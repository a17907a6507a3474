"""The settings of `serve`: what is watched, where it listens, how it stops, what it keeps."""

from pydantic import Field

from orchestrator.settings.section import Section


class ServeSettings(Section):
    """The daemon."""

    backlogs: tuple[str, ...] = ()
    """Backlogs that are watched beside those of `--backlog`: files, or folders; relative to the configuration file."""
    repo: str | None = None
    """The repository of all of them: a path relative to the configuration file, or the address of a remote one."""
    push_to: str | None = None
    """Branch that each sprint's result is pushed to when it ends, of the remote repository where there is one."""
    poll_s: float = Field(default=2.0, ge=0.1)
    """Seconds between two looks at the backlogs."""
    host: str | None = None
    """Address that is listened on. Empty: every one, IPv4 and IPv6, when PORT is set, else loopback alone."""
    port: int = Field(default=8080, ge=0, le=65535)
    """Port that is listened on; the variable PORT goes first; 0: a free one."""
    body_limit_kb: int = Field(default=8192, ge=1)
    """Largest request body."""
    answer_limit_kb: int = Field(default=1024, ge=1)
    """Largest body of a request that has a model's text read or judged; several times what a model can answer."""
    heartbeat_s: float = Field(default=15.0, gt=0)
    """Seconds between two signs of life on a stream of events that has nothing to tell."""
    watchdog_s: float = Field(default=60.0, ge=0)
    """Seconds that the event loop may stand still until the process ends itself with exit code 70; 0: never."""
    min_disk_mb: int = Field(default=200, ge=0)
    """Free space on the state folder's disk below which the daemon is not ready and begins no story."""


class RemoteSettings(Section):
    """How remote repositories are talked to."""

    max_attempts: int = Field(default=4, ge=1)
    """Tries of a clone, fetch or push whose connection fails; what the other side refuses is not tried again."""
    wait_initial_s: float = Field(default=2.0, ge=0)
    """Before the second try; doubles with each."""
    timeout_s: float = Field(default=900.0, gt=0)
    """Of one try."""
    max_mb: int = Field(default=4096, ge=1)
    """Size of a clone beyond which it is given up."""


class ShutdownSettings(Section):
    """How the daemon ends when it is told to."""

    grace_s: float = Field(default=20.0, ge=0)
    """Seconds that turns and commands at work get to end; what is cut then is done again at the next start."""


class RetentionSettings(Section):
    """How much of the past is kept; sprints that are not finished are never touched."""

    days: float | None = Field(default=90.0, gt=0)
    """Age of a finished sprint, or of an ended analysis, at which it is pruned; empty: never."""
    max_mb: int | None = Field(default=None, ge=1)
    """Size of the state folder above which the oldest finished sprints are pruned; empty: no limit."""
    every_s: float = Field(default=3600.0, gt=0)
    """Seconds between two looks of the daemon."""

"""The durability tests' sprint under `serve`: started, killed, told to end, read afterwards."""

import json
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.durability.driver import SPRINT, Bench, Ended
from tests.durability.team import STORIES
from tests.support import Team
from tests.zygote import Forked


class DaemonBench(Bench):
    """A bench whose one command is the daemon; its rows carry the sprint's name, as nobody else gives it one."""

    def __init__(
        self,
        folder: Path,
        stories: Mapping[str, str] = STORIES,
        *,
        script: Team | None = None,
        settings: Sequence[str] = (),
        more: Sequence[str] = (),
    ) -> None:
        super().__init__(folder, stories, script=script, settings=settings, more=more, sprint=SPRINT)

    def _words(self, *, named: bool = True) -> list[str]:
        words = ["serve", "--backlog", "backlog.csv", "--repo", "repo", "--port", "0", "--provider", "scripted"]
        words += ["--script", "team.jsonl", "--call-log", "calls.jsonl", *self.more]
        usual = ("provider.wait_initial_s=0.2", "serve.poll_s=0.1", "shutdown.grace_s=5")
        for setting in (*usual, *self.runner, *self.settings):
            words += ["--set", setting]
        return words

    def start(self, *, die_at: int | None = None, named: bool = True) -> Forked:
        """The daemon; it goes on with whatever it had begun."""
        return self._spawn(self._words(), die_at)

    def die_at_boundary(self, point: str, number: int) -> Ended:
        """The daemon, killed by itself at a boundary; ended by us when it never gets there."""
        return self.until_done(self.spawn("tests.durability.boundaries", [point, str(number), *self._words()]))

    def until_done(self, process: Forked) -> Ended:
        """Until the sprint has ended or the process has; the daemon is then told to end."""
        deadline = time.monotonic() + self.patience_s
        looked = time.monotonic()
        while process.poll() is None and not (self.told("sprint_ended") and self._listens(process)):
            assert time.monotonic() < deadline, (process.kill(), *process.communicate())
            time.sleep(max(0.02, 4 * (time.monotonic() - looked)))
            looked = time.monotonic()
        process.send_signal(signal.SIGTERM)
        return self.ended(process)

    def _listens(self, process: Forked) -> bool:
        """Whether it has begun: told to end before that, it never was there."""
        try:
            told = json.loads((self.state / "daemon" / "address.json").read_bytes())
        except (OSError, ValueError):
            return False
        return bool(told["pid"] == process.pid)

    def finish(self, *, named: bool = True) -> Ended:
        """The daemon until the sprint has ended, then told to end."""
        return self.until_done(self.start())

    def forget_repeated(self) -> None:
        """Take calls out of the call log that were paid for twice, once they were counted."""
        lines = self.calls_file.read_text().splitlines()
        first = {key: line for key, line in reversed([*zip(self.calls(), lines, strict=True)])}
        self.calls_file.write_text("".join(f"{line}\n" for line in first.values()))

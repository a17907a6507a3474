"""Which log lines are printed, when, and which are held back: decided without a clock, a thread or a stream of its own.

Lines wait in order, at most `ROOM` of them. Where there is no room, the lightest line goes: debug before info, a
warning or an error last. A place in the order is kept for what was held back, and told when its turn comes.
"""

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.domain.events import Event, Level

ROOM = 2000
"""Lines that wait: a few seconds of a burst, and no more memory than that."""
WINDOW_S = 1.0


@dataclass
class HeldBack:
    """What is missing at this place of the log: level → lines."""

    lines: Counter[Level] = field(default_factory=Counter)


class LineBuffer:
    """Lines on their way to a stream that takes at most `per_s` of them in any second."""

    def __init__(self, per_s: int, *, room: int = ROOM) -> None:
        self.per_s = per_s
        self._room = room
        self._waiting: deque[Event | HeldBack] = deque()
        self._levels: Counter[Level] = Counter()
        self._gap: HeldBack | None = None
        self._printed: deque[float] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, event: Event) -> None:
        """Take in a line, or hold back it or a lighter one."""
        if sum(self._levels.values()) >= self._room:
            lightest = min((level for level, count in self._levels.items() if count), key=lambda level: level.rank)
            if lightest.rank >= event.level.rank:
                self.hold_back({event.level: 1})
                return
            self._drop_last(lightest)
            self.hold_back({lightest: 1})
        self._waiting.append(event)
        self._levels[event.level] += 1

    def hold_back(self, lines: Mapping[Level, int]) -> None:
        """Count lines that will not be printed; they are told in one line, at the place where they are missing."""
        if self._gap is None:
            self._gap = HeldBack()
            self._waiting.append(self._gap)
        self._gap.lines.update(lines)

    def wait_s(self, now: float) -> float | None:
        """Seconds until the next line may be printed; None when none waits."""
        if not self._waiting:
            return None
        while self._printed and self._printed[0] <= now - WINDOW_S:
            self._printed.popleft()
        # After the limit was lowered more lines than it allows may lie within the window.
        over = len(self._printed) - self.per_s
        return self._printed[over] + WINDOW_S - now if over >= 0 else 0.0

    def another_within(self, seconds: float, now: float) -> bool:
        """Whether a second line may be printed so soon when the next one is printed now."""
        over = len(self._printed) + 1 - self.per_s
        return over < 0 or (*self._printed, now)[over] + WINDOW_S - now < seconds

    def take(self) -> Event | HeldBack:
        """The next line; what is held back from now on belongs to another gap than the one that was taken."""
        line = self._waiting.popleft()
        if isinstance(line, HeldBack):
            self._gap = None
        else:
            self._levels[line.level] -= 1
        return line

    def printed(self, now: float) -> None:
        """A line has left."""
        self._printed.append(now)

    def hold_back_all(self) -> None:
        """What waits is not printed any more; one line tells it."""
        lines = +self._levels
        for line in self._waiting:
            lines += line.lines if isinstance(line, HeldBack) else Counter()
        self.clear()
        if lines:
            self.hold_back(lines)

    def clear(self) -> None:
        """Nothing waits any more."""
        self._waiting.clear()
        self._levels.clear()
        self._gap = None

    def _drop_last(self, level: Level) -> None:
        """The newest line of a level: what was there first is told first, and the gap stays at the end."""
        for at in range(len(self._waiting) - 1, -1, -1):
            line = self._waiting[at]
            if isinstance(line, Event) and line.level is level:
                del self._waiting[at]
                self._levels[level] -= 1
                return

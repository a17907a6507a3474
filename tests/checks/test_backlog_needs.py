from orchestrator.checks.environment import LOOKED_FOR, needs_told
from orchestrator.core.story import Story
from orchestrator.settings.sections import EnvironmentSettings

STORIES = (
    Story(id="US-1", title="Keep sessions", constraints="Sessions are in Redis; rows in SQLite by sqlite3"),
    Story(id="US-2", title="Search", acceptance_criteria=("Answers come from Postgres", "The page is in React")),
    Story(id="US-3", title="A canvas with sharp edges, and a usb port in red is"),
)


def told(*programs: str, **settings: object) -> list[tuple[str, str]]:
    found = needs_told(STORIES, EnvironmentSettings.model_validate(settings), programs)
    return [(one.code, one.message.partition(":")[0]) for one in found]


def test_what_stories_speak_of_and_is_not_here_is_told_once_for_all() -> None:
    assert told(*LOOKED_FOR) == [
        ("environment.no_service", "US-2 speaks of PostgreSQL"),
        ("environment.no_service", "US-1 speaks of Redis"),
    ]
    assert told(*LOOKED_FOR, services=["localhost:6379", "db.internal:5432"]) == []
    here = {"services": ["localhost:6379", "localhost:5432"]}
    assert told("node", **here) == [("environment.no_program", "US-1 speaks of sqlite3")]
    assert told("cc", "make", "node", **here) == [("environment.hosts", "US-1 speaks of sqlite3")]
    assert told(*LOOKED_FOR, **here, install_scripts=["auto"]) == []
    assert told(*LOOKED_FOR, **here, install_scripts=["argon2"]) == [
        ("environment.install_script", "US-1 speaks of sqlite3")
    ]
    assert told("cc", "make", **here) == [
        ("environment.no_program", "US-2 speaks of what runs on Node, and this machine has no `node`")
    ]
    assert told(*LOOKED_FOR, **here, install_scripts="never") == [
        ("environment.install_script", "US-1 speaks of sqlite3")
    ]

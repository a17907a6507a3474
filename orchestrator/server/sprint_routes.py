"""Routes that tell what the record says of sprints and stories."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from orchestrator.app.sprint_reader import SprintView, history_of
from orchestrator.app.views import contract_of, sprint_json, story_json
from orchestrator.core.contract import ArchitectureContract
from orchestrator.core.errors import ConfigError, UnknownName
from orchestrator.reports.path import as_data, of_story
from orchestrator.server.models import Id, SprintShown, StoryShown
from orchestrator.server.openapi import READS, refusals
from orchestrator.server.service import Service, ServiceDep

router = APIRouter(prefix="/api/v1/sprints", tags=["sprints"])
SprintId = Annotated[Id, Path(description="A sprint's id")]
StoryId = Annotated[Id, Path(description="A story's id")]
Full = Annotated[bool, Query(description="true: the timeline holds every event, not only what was decided")]
Having = Annotated[Id | None, Query(description="Only sprints with this story")]
Most = Annotated[int, Query(ge=1, le=1000, description="So many of the latest")]
MARKDOWN = "text/markdown"


@router.get(
    "", operation_id="sprints", summary="The latest sprints, the newest last",
    responses={200: {"model": list[SprintShown]}, **refusals(*READS)},
)  # fmt: skip
async def sprints(service: ServiceDep, limit: Most = 50, story: Having = None) -> Response:
    """Each as `status --json` prints it. 404: no sprint has the story."""
    return await service.answer(lambda: [sprint_json(view) for view in service.reader.latest(limit, story=story)])


@router.get(
    "/{sprint}", operation_id="sprint", summary="A sprint", responses={200: {"model": SprintShown}, **refusals(*READS)}
)
async def sprint_route(sprint: SprintId, service: ServiceDep) -> Response:
    """The object of report.json as it is now, who works on the sprint, and which stories wait for a person."""
    return await service.answer(lambda: sprint_json(service.reader.sprint(sprint)))


@router.get(
    "/{sprint}/report", operation_id="report", summary="A sprint's report for people", response_class=Response,
    responses={200: {"content": {MARKDOWN: {"schema": {"type": "string"}}}}, **refusals(*READS)},
)  # fmt: skip
async def report(sprint: SprintId, service: ServiceDep) -> Response:
    """In Markdown, as it is now."""
    text = await service.in_thread(_report, service, sprint)
    return Response(text, media_type=MARKDOWN)


def _report(service: Service, sprint: str) -> bytes:
    return service.reader.markdown(service.reader.sprint(sprint)).encode("utf-8", "replace")


@router.get(
    "/{sprint}/stories/{story}", operation_id="story", summary="A story",
    responses={200: {"model": StoryShown}, **refusals(*READS)},
)  # fmt: skip
async def story_route(sprint: SprintId, story: StoryId, service: ServiceDep, full: Full = False) -> Response:
    """As `show --json` prints it."""
    view = await service.in_thread(_with_story, service, sprint, story)
    stat = await service.reader.diff_stat(view.record, story)
    return await service.answer(lambda: _shown(view, story, stat, full))


def _with_story(service: Service, sprint: str, story: str) -> SprintView:
    view = service.reader.sprint(sprint, story=story)
    history_of(view, story)
    return view


def _shown(view: SprintView, story: str, stat: str, full: bool) -> dict[str, Any]:
    drawn = of_story(history_of(view, story), running=view.running_pid is not None, full=full)
    return {**story_json(view, story, stat), "timeline": as_data(drawn)}


@router.get(
    "/{sprint}/stories/{story}/contract", operation_id="contract", summary="A story's contract",
    responses={200: {"model": ArchitectureContract}, **refusals(*READS)},
)  # fmt: skip
async def contract(sprint: SprintId, story: StoryId, service: ServiceDep) -> Response:
    """What its developer may write and use, as contracts/architecture.schema.json describes it. 404: it has none."""
    view = await service.in_thread(_with_story, service, sprint, story)
    return await service.answer(lambda: _contract(view, story), exact=True)


def _contract(view: SprintView, story: str) -> dict[str, Any]:
    try:
        return contract_of(view, story).model_dump(mode="json")
    except ConfigError as error:
        raise UnknownName(error.message) from error

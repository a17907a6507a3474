"""Records of steps by compiled statements: the same rows, results and errors as dbos's own; their times."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from dbos import DBOS
from dbos._dbos import _get_dbos_instance
from dbos._error import DBOSStepNondeterminismError, DBOSWorkflowCancelledError, DBOSWorkflowConflictIDError

from orchestrator.core.ports import Step
from orchestrator.core.sprint import StoryOutcome
from orchestrator.engine.database import EngineDatabase
from orchestrator.storage.event_file import sqlite_url
from tests.engine.test_durable import Counting, House, done, on_both

__all__ = ["on_both"]
TEXT = '{"value": "50 % of \\"it\\": :name, ?"}'


def compare(workflow_id: str) -> None:
    """Does the same by dbos's methods, which the class has still, and by ours, which its object has."""
    database = _get_dbos_instance()._sys_db
    theirs, ours = type(database), database
    assert {"_record_operation_result_txn", "_check_operation_execution_txn"} <= set(vars(ours))
    steps, flow = database.tables.operation_outputs, database.tables.workflow_status

    def result(number: int) -> Any:
        return {
            "workflow_uuid": workflow_id, "function_id": number, "function_name": "read", "output": TEXT, "error": None,
            "serialization": "portable_json", "started_at_epoch_ms": 1_700_000_000_000, "child_workflow_id": None,
        }  # fmt: skip

    with database.engine.begin() as connection:
        theirs._record_operation_result_txn(database, result(101), 5, connection)
        ours._record_operation_result_txn(result(102), 5, connection)
        query = sa.select(steps).where(steps.c.function_id > 100).order_by(steps.c.function_id)
        first, second = ({**row} for row in connection.execute(query).mappings())
        assert [type(first.pop("retention_timestamp")), first.pop("function_id")] == [int, 101]
        assert [type(second.pop("retention_timestamp")), second.pop("function_id")] == [int, 102]
        assert first == second
        found = theirs._check_operation_execution_txn(database, workflow_id, 102, "read", connection)
        assert ours._check_operation_execution_txn(workflow_id, 102, "read", connection) == found
        assert ours._check_operation_execution_txn(workflow_id, 103, "read", connection) is None
    assert ours.check_operation_execution(workflow_id, 102, "read") == found
    assert ours.check_operation_execution(workflow_id, 103, "read") is None
    # A repeated attempt to record the same is none of two executions.
    with database.engine.begin() as connection:
        ours._record_operation_result_txn(result(102), 5, connection)
    with pytest.raises(DBOSStepNondeterminismError), database.engine.begin() as connection:
        ours._record_operation_result_txn(result(102), 6, connection)
    with database.engine.connect() as connection:  # rolled back
        connection.execute(sa.update(flow).values(owner_xid="another"))
        with pytest.raises(DBOSWorkflowConflictIDError):
            ours._record_operation_result_txn(result(104), 5, connection)
    with database.engine.connect() as connection:
        connection.execute(sa.update(flow).values(status="CANCELLED"))
        with pytest.raises(DBOSWorkflowCancelledError):
            ours._check_operation_execution_txn(workflow_id, 104, "read", connection)
    with database.engine.begin() as connection:
        assert connection.execute(sa.select(steps).where(steps.c.function_id == 104)).first() is None


@pytest.mark.usefixtures("on_both")
async def test_a_record_is_the_one_that_dbos_makes(tmp_path: Path) -> None:
    async def body(step: Step, _payload: dict[str, Any]) -> StoryOutcome:
        await asyncio.to_thread(compare, str(DBOS.workflow_id))
        return done()

    assert await House(tmp_path, Counting()).run(body) == [done()]


def test_the_clock_that_dbos_asks_is_in_every_sqlite(tmp_path: Path) -> None:
    database = EngineDatabase(sqlite_url(tmp_path / "engine.sqlite"))
    with database.engine.begin() as connection:
        # As dbos makes its tables from Python 3.12 on.
        connection.exec_driver_sql("CREATE TABLE made (at INTEGER NOT NULL DEFAULT (unixepoch('subsec') * 1000))")
        connection.exec_driver_sql("INSERT INTO made DEFAULT VALUES")
        assert connection.exec_driver_sql("SELECT at FROM made").scalar_one() > 1_700_000_000_000
    database.close()


def take_over(workflow_id: str) -> None:
    """Does what another process does that takes the workflow over and records its second step."""
    database = _get_dbos_instance()._sys_db
    steps, flow = database.tables.operation_outputs, database.tables.workflow_status
    row = {"workflow_uuid": workflow_id, "function_id": 2, "function_name": "commit", "output": '{"value": "theirs"}'}
    row |= {"serialization": "portable_json", "started_at_epoch_ms": 1, "completed_at_epoch_ms": 2}
    with database.engine.begin() as connection:
        connection.execute(sa.update(flow).where(flow.c.workflow_uuid == workflow_id).values(owner_xid="another"))
        connection.execute(sa.insert(steps).values(row))


@pytest.mark.usefixtures("on_both")
async def test_one_that_another_process_has_taken_over_goes_on_with_no_result_of_its_own(tmp_path: Path) -> None:
    log: list[str] = []

    async def body(step: Step, _payload: dict[str, Any]) -> StoryOutcome:
        async def work(_step_id: str) -> str:
            return "mine"

        await step.step("open", work, str)
        await asyncio.to_thread(take_over, step.workflow_id)
        log.append(await step.step("commit", work, str))
        log.append(await step.step("merge", work, str))
        return done()

    with pytest.raises((TimeoutError, DBOSWorkflowConflictIDError)):
        await asyncio.wait_for(House(tmp_path, Counting()).run(body), 3)
    assert log == []

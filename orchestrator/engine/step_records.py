"""The engine's records of steps, read and written by statements that are compiled once.

dbos builds three statements for each step, which takes longer than the database needs for them. Only the plain case is
here: a step behind the last record, and a result of the workflow's owner. dbos itself handles everything else.
"""

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from dbos import DBOS
from dbos._context import current_owner_xid
from dbos._schemas import SCHEMA_PLACEHOLDER
from dbos._sys_db import OperationResultInternal, RecordedResult, SystemDatabase, WorkflowStatusString

_GIVEN = (
    "workflow_uuid", "function_id", "function_name", "output", "error", "serialization", "started_at_epoch_ms",
)  # fmt: skip
"""Columns that are named as in dbos's own value of a result."""

MOST_KNOWN = 10_000
"""Workflows whose last record is kept in memory."""


def use_compiled_statements(dbos: DBOS) -> "StepRecords":
    """Makes a launched dbos read and write the records of its steps with these statements."""
    database = dbos._sys_db
    records = StepRecords(database)
    # Of this object and not of its class: other users of dbos in the process keep their own.
    vars(database).update(
        check_operation_execution=records.find_once,
        _check_operation_execution_txn=records.find,
        _record_operation_result_txn=records.add,
    )
    return records


class StepRecords:
    """In place of methods of dbos's database, with the same results and errors."""

    def __init__(self, database: SystemDatabase) -> None:
        self._newest: dict[str, tuple[str | None, int]] = {}
        """Workflow → its execution, and the last step that had a record before it."""
        self._find_alone = database.check_operation_execution
        self._find, self._add = database._check_operation_execution_txn, database._record_operation_result_txn
        flow, step, param = database.tables.workflow_status, database.tables.operation_outputs, sa.bindparam
        newest = sa.select(sa.func.max(step.c.function_id)).where(step.c.workflow_uuid == flow.c.workflow_uuid)
        look = sa.select(flow.c.status, newest.scalar_subquery().label("newest"))
        self._look = _compiled(database, look.where(flow.c.workflow_uuid == param("workflow_uuid")))
        values = {name: param(name, type_=step.c[name].type) for name in (*_GIVEN, "completed_at_epoch_ms")}
        values |= {"application_name": sa.literal(database.app_name, sa.Text)}
        values |= {"retention_timestamp": database._now_ms_sql()}
        owned = sa.and_(flow.c.workflow_uuid == param("workflow_uuid"), flow.c.owner_xid == param("owner_xid"))
        # The workflow's row stays locked until the commit, as in dbos: no other owner comes between.
        row = sa.select(*values.values()).where(owned).with_for_update(key_share=True)
        insert = database.dialect.insert(step).from_select([*values], row).on_conflict_do_nothing()
        self._insert = _compiled(database, insert)

    def find(self, workflow_id: str, function_id: int, name: str, connection: sa.Connection) -> RecordedResult | None:
        """Returns the record of a step, None without one."""
        row = self._look(connection, {"workflow_uuid": workflow_id}).one_or_none()
        if row is not None and row.status != WorkflowStatusString.CANCELLED.value:
            newest = row.newest or 0
            if len(self._newest) >= MOST_KNOWN:
                self._newest.clear()
            self._newest[workflow_id] = (current_owner_xid(workflow_id), newest)
            if function_id > newest:
                return None
        return self._find(workflow_id, function_id, name, connection)

    def is_new(self, workflow_id: str, function_id: int) -> bool:
        """Returns whether this execution began with a last record that is known, and before this step's."""
        execution, newest = self._newest.get(workflow_id, (None, 0))
        return execution is not None and execution == current_owner_xid(workflow_id) and function_id > newest

    def find_once(self, workflow_id: str, function_id: int, name: str, **more: Any) -> RecordedResult | None:
        """Does the same with a connection of its own. An execution is alone with its workflow, so that no record comes
        behind the last one but its own; what one writes that another has taken over is refused by its owner's mark."""
        if self.is_new(workflow_id, function_id):
            return None
        return self._find_alone(workflow_id, function_id, name, **more)

    def add(
        self, result: OperationResultInternal, completed_at_epoch_ms: int, connection: sa.Connection, *,
        owner_xid: str | None = None, **more: Any,
    ) -> None:  # fmt: skip
        """Adds the record of a step."""
        owner = owner_xid or current_owner_xid(result["workflow_uuid"])
        if owner is not None and result["child_workflow_id"] is None:
            values = {**result, "completed_at_epoch_ms": completed_at_epoch_ms, "owner_xid": owner}
            if self._insert(connection, values).rowcount == 1:
                return
        self._add(result, completed_at_epoch_ms, connection, owner_xid=owner_xid, **more)


def _compiled(database: SystemDatabase, statement: Any) -> Callable[[sa.Connection, Any], sa.CursorResult[Any]]:
    schemas = {SCHEMA_PLACEHOLDER: database.schema}
    compiled = statement.compile(
        dialect=database.engine.dialect, schema_translate_map=schemas, render_schema_translate=True
    )
    text, constants, order = str(compiled), compiled.params, compiled.positiontup

    def execute(connection: sa.Connection, values: Any) -> sa.CursorResult[Any]:
        named = {name: values.get(name, constant) for name, constant in constants.items()}
        return connection.exec_driver_sql(text, named if order is None else tuple(named[name] for name in order))

    return execute

"""The engine's rows of what has ended, looked at and removed without launching it."""

from collections.abc import Iterator
from contextlib import contextmanager

from dbos import DBOSClient, DBOSPortableJSONSerializer

_CHUNK = 500


@contextmanager
def _client(url: str) -> Iterator[DBOSClient]:
    client = DBOSClient(system_database_url=url, serializer=DBOSPortableJSONSerializer(), retry_connection_errors=False)
    try:
        yield client
    finally:
        client.destroy()


def workflows_of(client: DBOSClient, run: str) -> list[str]:
    """Ids of the workflows of one sprint or analysis."""
    prefix = f"{run}/"
    found = client.list_workflows(workflow_id_prefix=prefix, load_input=False, load_output=False)
    return [status.workflow_id for status in found if status.workflow_id.startswith(prefix)]


def forget_workflows(url: str, run: str) -> int:
    """Delete every workflow of a sprint or an analysis with all that is recorded of it; how many they were. Blocks.

    Only for what nobody runs. The database must exist.
    """
    with _client(url) as client:
        ids = workflows_of(client, run)
        for start in range(0, len(ids), _CHUNK):
            client.delete_workflows(ids[start : start + _CHUNK])
    return len(ids)

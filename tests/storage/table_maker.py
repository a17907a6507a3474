"""`python -m tests.storage.table_maker URL FILE`: uses the store of commits once the file is there."""

import sys
import time
from pathlib import Path

from orchestrator.storage.commit_store import PostgresCommitStore

if __name__ == "__main__":
    while not Path(sys.argv[2]).exists():
        time.sleep(0.001)
    print(PostgresCommitStore(sys.argv[1]).read("s1", "app.git").refs)

"""What a look at SQL costs: schemas, queries and dumps, with the dialect known and unknown."""

import time
from functools import partial

from benchmarks.measure import Figure, Result
from orchestrator.code.sql.check import Project, check_sql

TABLE = """CREATE TABLE IF NOT EXISTS orders_{n} (
  id INTEGER PRIMARY KEY,
  customer_id INTEGER NOT NULL REFERENCES customers (id) ON DELETE CASCADE,
  status VARCHAR(20) NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'paid', 'sent')),
  total DECIMAL(10, 2) NOT NULL DEFAULT 0,
  created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE INDEX idx_orders_{n} ON orders_{n} (customer_id, status);
INSERT INTO orders_{n} (customer_id, total) VALUES (1, 2.50), (2, 3.75);
SELECT c.name, COUNT(*) AS n FROM customers c LEFT JOIN orders_{n} o ON o.customer_id = c.id GROUP BY c.name ORDER BY n;
"""
PACKAGES = {"sqlite": "better-sqlite3", "postgres": "pg", "mysql": "mysql2", "unknown": ""}


def _per_kb(text: str, package: str) -> float:
    project = Project(packages=frozenset({package}))
    look = partial(check_sql, text, "schema.sql", project=project)
    look()
    before = time.process_time()
    found = look()
    taken = time.process_time() - before
    if found:
        raise AssertionError(f"the sample is refused: {found[0]}")
    return taken * 1000 / (len(text) / 1000)


def run(tables: int = 40) -> Result:
    """Milliseconds of processor time per kB of SQL."""
    schema = "".join(TABLE.format(n=n) for n in range(tables))
    rows = ",\n".join(f"({n}, 'row {n}', {n}.5)" for n in range(40 * tables * tables))
    dump = f"INSERT INTO orders (id, name, total) VALUES {rows};\n"
    figures = [
        Figure(name=f"schema and queries, {name}", value=_per_kb(schema, package), unit="ms/kB")
        for name, package in PACKAGES.items()
    ]
    figures.append(Figure(name=f"dump of {len(dump) // 1000} kB, unknown", value=_per_kb(dump, ""), unit="ms/kB"))
    return Result(
        name="sql", about=f"{len(schema) // 1000} kB of SQL judged statement by statement", figures=tuple(figures)
    )

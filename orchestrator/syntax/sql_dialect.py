"""Which SQL a file speaks: by its name, its own words, the project's packages and the recorded tech stack."""

import re
from typing import NamedTuple

OTHER = "other"
"""A dialect whose words are not known here: little is refused in its name."""
_NAMES = {
    "sqlite": r"sqlite3?|libsql|turso",
    "postgres": r"postgres(?:ql)?|pg|pgsql|psql|cockroach(?:db)?|timescale(?:db)?|supabase|neon",
    "mysql": r"mysql8?|mariadb",
    "tsql": r"mssql|sql[ _-]?server|t-?sql|azure sql",
    OTHER: r"oracle|plsql|db2|duckdb|snowflake|bigquery|clickhouse|redshift|hive|spark|presto|trino|cassandra|firebird"
    r"|teradata|vertica|hsqldb|h2|derby|informix|sybase|databricks|exasol|cql",
}
_PACKAGES = {
    "sqlite": """better-sqlite3 sqlite3 sqlite sql.js aiosqlite pysqlite3 pysqlite3-binary libsql libsql-client
    @libsql/client expo-sqlite @sqlite.org/sqlite-wasm node-sqlite3-wasm sqlite-utils""",
    "postgres": """pg postgres pg-promise pg-native slonik asyncpg psycopg psycopg2 psycopg2-binary pg8000
    aiopg psycopg-binary @neondatabase/serverless @vercel/postgres @supabase/supabase-js pg-pool pglite
    @electric-sql/pglite""",
    "mysql": """mysql mysql2 pymysql mysqlclient aiomysql asyncmy mysql-connector-python mariadb promise-mysql
    @planetscale/database""",
    "tsql": "mssql tedious pymssql msnodesqlv8",
    OTHER: """oracledb cx-oracle duckdb @duckdb/node-api snowflake-connector-python snowflake-sdk clickhouse-driver
    clickhouse-connect @clickhouse/client google-cloud-bigquery @google-cloud/bigquery cassandra-driver pyodbc odbc
    redshift-connector trino pyspark""",
}
_USUAL = ("sqlite", "postgres", "mysql")
_DRIVER_OF = {package: name for name, packages in _PACKAGES.items() for package in packages.split()}
_IMPORTED = re.compile(
    r"""(?:\bfrom|\brequire\s*\(|\bimport(?:\s*\()?)\s*["']?(?:(?:node|bun):)?(?P<name>@?[\w./-]+)["']?"""
)
_SPOKEN = {
    "mysql": re.compile(
        r"`\w+`|\bAUTO_INCREMENT\b|\bENGINE\s*=|\bUNSIGNED\b|^[ \t]*DELIMITER\b|\bMODIFY\s+COLUMN\b"
        r"|\bCHARACTER SET\b|/\*!\d",
        re.I | re.M,
    ),
    "sqlite": re.compile(r"\bAUTOINCREMENT\b|\bWITHOUT\s+ROWID\b|^[ \t]*PRAGMA\s|\bUSING\s+fts[345]\b", re.I | re.M),
    "tsql": re.compile(
        r"\[\w+\]\s*[.(\[\w,]|\bIDENTITY\s*\(|\bNVARCHAR\b|^[ \t]*GO[ \t]*$|\bOBJECT_ID\s*\(", re.I | re.M
    ),
    "postgres": re.compile(
        r"\$\w*\$|\b(?:BIG|SMALL)?SERIAL\b|\bJSONB\b|\bTIMESTAMPTZ\b|\bplpgsql\b|^\\\w|\bBYTEA\b|\w::\w"
        r"|\bCREATE EXTENSION\b",
        re.I | re.M,
    ),
    OTHER: re.compile(
        r"\bVARCHAR2\b|\bNUMBER\s*\(|^/[ \t]*$|\bENGINE\s*=\s*MergeTree|\bPARTITIONED BY\b"
        r"|\bSTRUCT<|\bQUALIFY\b"
        r"|\bCREATE GENERATOR\b|\bFROM\s+DUAL\b|\bSYSIBM\b|\bSET TERM\b|\bLISTAGG\b|\bSORTKEY\b|\bDISTKEY\b",
        re.I | re.M,
    ),
}
_LOOK = 60_000
"""Characters of a text that are searched for the dialect's own words."""


class Project(NamedTuple):
    """What tells the dialect besides the file itself."""

    packages: frozenset[str] = frozenset()
    """Normalised names from the manifests and the plan."""
    stack: tuple[str, ...] = ()
    """What was recorded on the tech stack."""


def dialects_of(path: str, text: str, project: Project) -> tuple[str, ...]:
    """The dialects that may be meant: SQL that one of them takes is right.

    The path goes before what the file imports, and both before the project's packages and stack, of which all named
    ones count; where nothing tells, the usual ones and those whose words the text uses. `other` among them means that
    words of an unknown dialect may be right.
    """
    for found in (_named(path.replace("_", " ")), _imported(text) if not path.lower().endswith(".sql") else ()):
        if found:
            return found
    packages = [_DRIVER_OF[name] for name in sorted(project.packages) if name in _DRIVER_OF]
    told = dict.fromkeys((*packages, *(name for line in project.stack for name in _named(line))))
    return tuple(told) or _by_words(text)


def _named(text: str) -> tuple[str, ...]:
    return tuple(name for name, words in _NAMES.items() if re.search(rf"(?<![a-z])(?:{words})(?![a-z])", text, re.I))


def _imported(text: str) -> tuple[str, ...]:
    names = (match["name"].lower() for match in _IMPORTED.finditer(text))
    return tuple(dict.fromkeys(_DRIVER_OF[name] for name in names if name in _DRIVER_OF))


def _by_words(text: str) -> tuple[str, ...]:
    """Those whose own words the text uses, with every one that is known: words alone are no proof."""
    head = text[:_LOOK]
    spoken = [name for name, words in _SPOKEN.items() if words.search(head)]
    return tuple(dict.fromkeys((*spoken, *_USUAL)))

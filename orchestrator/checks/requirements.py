"""Packages as people write them → name and version; packages that a description speaks of."""

import re
from collections.abc import Iterable, Mapping

from packaging.utils import canonicalize_name

from orchestrator.domain.breakdown import PackageDependencies
from orchestrator.syntax.import_names import is_python_builtin, npm_package, python_distribution

_REQUIREMENT = re.compile(
    r"^(?P<name>@[a-z0-9~][\w.~-]*/[\w.~-]+|[A-Za-z0-9][\w.-]*)\s*(\[[^\]]*\])?\s*"
    r"(@\s*(?P<at>[^\s;]+)|(?P<pin>(===?|[<>!~]=?|\^)[^;@]*)|[: ]\s*(?P<bare>[\^~]?v?\d[\w.*+-]*))?\s*(;.*)?$",
    re.IGNORECASE,
)
_NONE = frozenset({"", "none", "n/a", "na", "-", "null", "nothing"})
_WELL_KNOWN = re.compile(
    r"\b(flask|django|fastapi|starlette|uvicorn|gunicorn|sqlalchemy|pydantic|numpy|pandas|scipy|matplotlib|httpx|aiohttp"
    r"|beautifulsoup4|scikit-learn|psycopg2?|pymysql|pyjwt|bcrypt|passlib|celery|jinja2|lodash|axios|express\.js|mongoose"
    r"|sequelize|better-sqlite3|jsonwebtoken|body-parser|supertest|tailwindcss|webpack|nodemon|dotenv|python-dotenv)\b",
    re.IGNORECASE,
)
_SPOKEN = re.compile(
    r"[`'\"](?P<before>@?[A-Za-z0-9][\w./-]*)[`'\"]\s+(?:npm |pip |third-party )?(?:package|library|dependency)\b"
    r"|\b(?:npm|pip|third-party) (?:package|library|dependency) [`'\"]?(?P<behind>@?[A-Za-z0-9][\w./-]*\w)",
    re.IGNORECASE,
)
_INSTALLED = re.compile(
    r"\b(?:pip3?|uv|npm|pnpm|yarn|bun|poetry|pdm|pipenv)\s+(?:install|add|i)\s+(?!-[re]\b)(?:-\S+\s+)*"
    r"(?P<name>@?[A-Za-z0-9][\w./-]*\w)",
    re.IGNORECASE,
)
_NO_MODULE = re.compile(r"No module named '([A-Za-z_][\w.]*)'")
_NO_PACKAGE = re.compile(r"Cannot find (?:module|package) '(@?[A-Za-z0-9][\w./-]*)'")
_ALIAS = re.compile(r"^npm:(?P<name>@?[^@\s]+)(@[^/\s]*)?$")
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")
_PLACE = re.compile(r"^(\.\.?([/\\]|$)|~?[/\\]|\S+@\S+:|\S+[/\\]\S+$|\S+\.(tgz|tar\.gz|whl|zip)$)", re.IGNORECASE)
"""A path, an address of git without a scheme, `user/repository`, an archive."""
_REQUIREMENT_CAP = 200
_DESCRIPTION_CAP = 5000
"""Characters that are read: what is longer is no requirement, or repeats itself."""
_SAME = {"express.js": "express"}


def requirement(text: str) -> tuple[str, str] | None:
    """(name, version) of a requirement such as `express@^4.18.0` or `flask>=2`, else None; no version: `*`."""
    text = " ".join(text[:_REQUIREMENT_CAP].split())
    match = _REQUIREMENT.match(text)
    if match is None or text.lower() in _NONE:
        return None
    version = (match["at"] or match["pin"] or match["bare"] or "*").strip()
    return match["name"], version


def read_packages(value: object) -> tuple[PackageDependencies, list[str]]:
    """Packages from {dependencies, devDependencies}, a flat map or a list; and the entries that name no package."""
    ignored: list[str] = []
    if isinstance(value, Mapping) and {"dependencies", "devDependencies"} & set(value):
        normal = _group(value.get("dependencies"), ignored)
        dev = _group(value.get("devDependencies"), ignored)
        return PackageDependencies(dependencies=normal, devDependencies=dev), ignored
    return PackageDependencies(dependencies=_group(value, ignored)), ignored


def _group(value: object, ignored: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    if isinstance(value, Mapping):
        for name, version in value.items():
            read = requirement(str(name))
            if read is None:
                _note(name, ignored)
            else:
                found[read[0]] = read[1] if package_source(*read) else _stated(version) or read[1]
        return found
    for entry in value if isinstance(value, list) else [value]:
        if isinstance(entry, Mapping) and isinstance(entry.get("name"), str):
            found.update(_group({entry["name"]: entry.get("version")}, ignored))
        elif isinstance(entry, str) and (read := requirement(entry)) is not None:
            found[read[0]] = read[1]
        else:
            _note(entry, ignored)
    return found


def _stated(version: object) -> str:
    """The version in what stands behind a name: a text, a number, or a table as package managers know them."""
    if isinstance(version, Mapping):
        sources = (version.get(how) for how in ("git", "url", "path", "file", "registry", "index", "source"))
        places = (place for place in sources if isinstance(place, str) and place.strip())
        version = next((place if ":" in place else f"file:{place}" for place in places), version.get("version"))
    return str(version).strip() if isinstance(version, str | int | float) else ""


def package_source(name: str, version: str) -> str:
    """What a version says beyond a version: an address, a path, another package's name; "" for a mere version."""
    told = version.split(";")[0].strip()
    alias = _ALIAS.match(told)
    if alias and alias["name"].lower() == name.lower():
        return ""
    elsewhere = "://" in told or _SCHEME.match(told) or _PLACE.match(told)
    return told if elsewhere and not told.startswith("workspace:") else ""


def _note(entry: object, ignored: list[str]) -> None:
    if entry is not None and str(entry).strip().lower() not in _NONE:
        ignored.append(str(entry)[:120])


def normal_names(names: Iterable[str]) -> frozenset[str]:
    """Every name in the forms it may be compared in: lower case (npm) and PEP 503 (Python)."""
    lowered = {name.strip().lower() for name in names}
    return frozenset(lowered | {str(canonicalize_name(name)) for name in lowered})


def missing_packages(text: str) -> tuple[str, ...]:
    """Returns the packages that an analysis, a review or a failed run says are missing; each once.

    A Python module stands for the distribution that usually brings it.
    """
    text = text[-_DESCRIPTION_CAP:]
    found = dict.fromkeys(m["name"].lower() for m in _INSTALLED.finditer(text))
    found |= dict.fromkeys((m["before"] or m["behind"]).lower() for m in _SPOKEN.finditer(text))
    tops = [match[1].split(".")[0] for match in _NO_MODULE.finditer(text)]
    found |= dict.fromkeys(python_distribution(top) for top in tops if not is_python_builtin(top))
    found |= dict.fromkeys(npm_package(match[1]) for match in _NO_PACKAGE.finditer(text))
    return tuple(found)


def spoken_packages(description: str) -> tuple[str, ...]:
    """Packages a description names plainly enough to expect a declaration; lower case, each once."""
    description = description[:_DESCRIPTION_CAP]
    found = dict.fromkeys(m["name"].lower() for m in _INSTALLED.finditer(description))
    found.update(dict.fromkeys((m["before"] or m["behind"]).lower() for m in _SPOKEN.finditer(description)))
    found.update(dict.fromkeys(m[1].lower() for m in _WELL_KNOWN.finditer(description)))
    return tuple(dict.fromkeys(_SAME.get(name, name) for name in found))

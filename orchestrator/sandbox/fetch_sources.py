"""Determines what a fetch step may reach, from its variables; the step itself gets no credentials.

An `https` registry that asks for credentials is handed to the step as `http` on the same host and port, which only our
proxy understands: it speaks TLS to the registry itself, because nothing can be added inside a tunnel.

npm's settings of this machine: its user's `.npmrc`, as variables, and what they show to which registry.
"""

import base64
import html
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

from orchestrator.code.parsers import parse_json
from orchestrator.core.errors import ConfigError
from orchestrator.core.value import Value
from orchestrator.files.hosts import is_spared

REGISTRY = "https://registry.npmjs.org/"
_TAKEN = re.compile(r"(@[^:/\s]+:)?registry|//\S+:(_authToken|_auth|username|_password)|(https-|no)?proxy|cafile")
_REFERENCE = re.compile(r"\$\{([^}]+)\}")
_SECRET = re.compile(r"npm_config_(//.+/):(_authToken|_auth|username|_password)", re.IGNORECASE)


def npm_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Registries, certificates, proxies and credentials of the user's `.npmrc`, and the newest day. Blocks.

    An `.npmrc` that cannot be read says nothing, as for npm.
    """
    place = variables.get("NPM_CONFIG_USERCONFIG") or os.path.join(variables.get("HOME", "/nonexistent"), ".npmrc")
    try:
        lines = Path(place).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        lines = []
    before = variables.get("NPM_CONFIG_BEFORE")
    found = {"NPM_CONFIG_REGISTRY": REGISTRY, **({"NPM_CONFIG_BEFORE": before} if before else {})}
    for line in lines:
        name, _, value = (word.strip() for word in line.partition("="))
        if _TAKEN.fullmatch(name):
            plain = _REFERENCE.sub(lambda match: variables.get(match[1], match[0]), value.strip("\"'"))
            found[_variable(name)] = plain
    return found


def _variable(name: str) -> str:
    """npm takes names of registries as they are, and others in upper case."""
    return f"npm_config_{name}" if name[0] in "@/" else f"NPM_CONFIG_{name.upper().replace('-', '_')}"


def is_npm_secret(name: str) -> bool:
    """Returns whether the variable is shown to a registry."""
    return _SECRET.fullmatch(name) is not None


def npm_credentials(variables: Mapping[str, str]) -> dict[str, str]:
    """Values of `Authorization` by the part of an address that they are for, `//host/path/`. Raises ConfigError."""
    found: dict[str, dict[str, str]] = {}
    for name, value in variables.items():
        if match := _SECRET.fullmatch(name):
            found.setdefault(match[1], {})[match[2].lower()] = value
    return {prefix: shown for prefix, words in found.items() if (shown := _header(words)) is not None}


def _header(words: Mapping[str, str]) -> str | None:
    if "_authtoken" in words:
        return f"Bearer {words['_authtoken']}"
    if "_auth" in words:
        return f"Basic {words['_auth']}"
    if "username" in words and "_password" in words:
        try:
            return basic(words["username"], base64.b64decode(words["_password"]).decode())
        except ValueError as error:
            raise ConfigError("npm's setting `_password` is not base64") from error
    return None


def basic(user: str, password: str) -> str:
    """Returns the value of `Authorization` for user and password."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


_PYPI = "https://pypi.org/simple"
_FILES_OF = {"pypi.org": "files.pythonhosted.org", "test.pypi.org": "test-files.pythonhosted.org"}
"""Hosts of a registry's files, if they differ from the registry's own."""
_INSTALLERS = ("UV_", "PIP_", "NPM_CONFIG_")
_CERTIFICATES = (
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    *("NODE_EXTRA_CA_CERTS", "NPM_CONFIG_CAFILE"),
)
_OWN_CERTIFICATE = ("SSL_CLIENT_CERT", "PIP_CLIENT_CERT")
_INSECURE = ("UV_INSECURE_HOST", "PIP_TRUSTED_HOST")
_SETTINGS_FILES = {"PIP_CONFIG_FILE", "UV_CONFIG_FILE", "NPM_CONFIG_USERCONFIG", "NPM_CONFIG_GLOBALCONFIG"}
"""They may hold credentials, so a step is not given them: what they say is in its variables."""
_PROXIES = {
    "http": ("HTTP_PROXY", "ALL_PROXY", "PIP_PROXY", "NPM_CONFIG_PROXY"),
    "https": ("HTTPS_PROXY", "ALL_PROXY", "PIP_PROXY", "NPM_CONFIG_HTTPS_PROXY", "NPM_CONFIG_PROXY"),
}
_NO_PROXY = ("NO_PROXY", "NPM_CONFIG_NOPROXY")
_READ = re.compile(r"INDEX|FIND_LINKS|CONSTRAINT|CERT|CAFILE|CA_BUNDLE")
"""In names of variables that name what installers read."""
_ON = {"1", "true", "yes", "on"}
_PORTS = {"http": 80, "https": 443}


class Place(NamedTuple):
    """One port of one host; the name is in lower case, without brackets and without a final dot."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Credential(Value):
    """Credentials for a registry."""

    place: Place
    path: str
    """Of the registry on its host."""
    authorization: str
    """The header's value."""


class Upstream(Value):
    """A proxy of this machine."""

    place: Place
    tls: bool
    authorization: str | None


class Sources(Value):
    """Variables for a step, and credentials that our proxy keeps for it."""

    variables: Mapping[str, str]
    """The step's, without proxies and credentials."""
    readable: tuple[Path, ...] = ()
    """Certificates, folders of packages and files of constraints that the variables name."""
    registries: frozenset[Place] = frozenset()
    """Open wherever their names lead: people configured them."""
    hosts: frozenset[Place] = frozenset()
    """Open where their names lead to public addresses, or where they are addresses themselves."""
    spoken: frozenset[Place] = frozenset()
    """Registries with TLS to which our proxy speaks itself."""
    credentials: tuple[Credential, ...] = ()
    upstreams: Mapping[str, Upstream] = {}
    """By the scheme of what is fetched."""
    no_proxy: str = ""
    certificates: tuple[Path, ...] = ()
    own_certificate: Path | None = None
    insecure: frozenset[str] = frozenset()
    """Hosts whose certificates are not looked at."""

    def authorization(self, place: Place, path: str) -> str | None:
        """Of the registry on this host and port that the path lies in; None beside it and for one that leads out."""
        if _leads_out(path):
            return None
        there = [one for one in self.credentials if one.place == place]
        within = [one for one in there if f"{path}/".startswith(f"{one.path.rstrip('/')}/")]
        best = max(within, key=lambda one: len(one.path), default=None)
        return None if best is None else best.authorization

    @property
    def closed(self) -> frozenset[Place]:
        """Places of registries that ask for credentials."""
        return frozenset(one.place for one in self.credentials)

    def upstream(self, scheme: str, place: Place) -> Upstream | None:
        """Returns the machine's proxy for this place, if it has one for it."""
        return None if is_spared(self.no_proxy, place.host, place.port) else self.upstreams.get(scheme)


def _leads_out(path: str) -> bool:
    """Returns whether some server may read the path as one with `..`: encoded, twice, or with parameters."""
    parts = re.split(r"[/\\]", unquote(unquote(path)))
    return any(part.partition(";")[0] in {".", ".."} for part in parts)


_ARCHIVE = re.compile(r"\.(whl|tgz|zip|egg|tar\.(gz|bz2|xz))(\.metadata)?$", re.IGNORECASE)
_HREF = re.compile(r"<a\s[^>]*?\bhref\s*=\s*[\"']([^\"'<>]+)", re.IGNORECASE)


def archives_in(page: bytes, address: str) -> Iterator[tuple[Place, str]]:
    """Yields place and path of each package's archive that a page of a registry at this address names.

    Those are the links of HTML, the files of Python's JSON and npm's tarballs, and no address in another text.
    """
    for link in _links(page.decode("utf-8", "replace")):
        with suppress(ValueError):  # no address
            url = urlsplit(urljoin(address, html.unescape(link)))
            if _ARCHIVE.search(url.path) and not _leads_out(url.path):
                yield place_at(url), url.path


def _links(text: str) -> Iterator[str]:
    try:
        held = parse_json(text)
    except (ValueError, RecursionError):
        yield from _HREF.findall(text)
        return
    told = held if isinstance(held, dict) else {}
    files, versions = told.get("files"), told.get("versions")
    entries = [*(files if isinstance(files, list) else ())]
    entries += [one.get("dist") for one in (versions.values() if isinstance(versions, dict) else ()) if one]
    for entry in entries:
        link = (entry.get("url") or entry.get("tarball")) if isinstance(entry, dict) else None
        if isinstance(link, str):
            yield link


def without_credentials(variables: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables of a step for which our proxy keeps no credentials: one that runs code of packages."""
    own = {name: value for name, value in variables.items() if name.upper() not in _OWN_CERTIFICATE}
    return {name: _cleaned(name, value, frozenset()) for name, value in own.items() if not is_npm_secret(name)}


def place_of(text: str, port: int) -> Place:
    """`host`, `host:port` or `[address]:port`. Raises ValueError."""
    parts = urlsplit(f"//{text}")
    if not parts.hostname or parts.path or parts.query or "@" in text:
        raise ValueError(f"{text[:200]!r} is no host")
    return Place(parts.hostname.lower().rstrip("."), parts.port or port)


def read_sources(variables: Mapping[str, str], machine: Mapping[str, str], hosts: Iterable[str] = ()) -> Sources:
    """Returns the sources of a step with `variables`, on a machine with `machine`'s. Blocks; raises ConfigError."""
    given = {name.upper(): value for name, value in variables.items()}
    own_certificate = next((Path(given[name]) for name in _OWN_CERTIFICATE if name in given), None)
    configured = [url for name, value in variables.items() if _is_installers(name) for url in _addresses(name, value)]
    npm = npm_credentials(variables)
    credentials = [one for url in configured if (one := _credential(url, npm)) is not None]
    closed = {one.place for one in credentials}
    tls = {place_at(url) for url in configured if url.scheme == "https"}
    spoken = frozenset(place for place in tls if place in closed or own_certificate is not None)
    cleaned = {name: _cleaned(name, value, spoken) for name, value in variables.items() if not _is_kept_back(name)}
    return Sources(
        variables={**cleaned, **_for_spoken(variables, spoken)},
        readable=tuple(_paths(cleaned)),
        registries=frozenset(map(place_at, _with_files([*configured, *_usual(given)]))),
        hosts=frozenset(place for text in hosts for place in _both_ports(text)),
        spoken=spoken,
        credentials=tuple(credentials),
        upstreams=_upstreams(variables, machine),
        no_proxy=next((found for name in _NO_PROXY if (found := _found(name, variables, machine))), ""),
        certificates=tuple(path for name in _CERTIFICATES if name in given and (path := Path(given[name])).exists()),
        own_certificate=own_certificate,
        insecure=frozenset(word.split(":")[0] for name in _INSECURE for word in given.get(name, "").split()),
    )


def place_at(url: SplitResult) -> Place:
    """Returns host and port of an http or https address. Raises ValueError for an invalid port."""
    return Place((url.hostname or "").rstrip("."), url.port or _PORTS.get(url.scheme, 443))


def _is_installers(name: str) -> bool:
    return name.upper().startswith(_INSTALLERS)


def _is_kept_back(name: str) -> bool:
    upper = name.upper()
    proxies = {one for names in (*_PROXIES.values(), _NO_PROXY) for one in names}
    return upper in {*proxies, *_OWN_CERTIFICATE} or is_npm_secret(name)


def _pattern(name: str) -> re.Pattern[str]:
    """Returns the pattern of addresses in a variable: uv separates this list by commas, which passwords may contain."""
    return re.compile(r"https?://[^\s,]+" if name == "UV_FIND_LINKS" else r"https?://\S+")


def _addresses(name: str, value: str) -> Iterator[SplitResult]:
    for text in _pattern(name).findall(value):
        try:
            url = urlsplit(text)
            place_at(url)
        except ValueError:
            raise ConfigError(f"{name} holds an address that is none") from None  # it may hold a password
        yield url


def _cleaned(name: str, value: str, spoken: frozenset[Place]) -> str:
    """Returns the variable without user and password in its addresses, and with `http` where our proxy speaks TLS."""

    if name.upper() in _SETTINGS_FILES:
        return os.devnull
    if not _is_installers(name):
        return value

    def clean(match: re.Match[str]) -> str:
        url = urlsplit(match[0])
        place = place_at(url)
        if url.scheme == "https" and place in spoken:
            return url._replace(scheme="http", netloc=str(place)).geturl()
        return url._replace(netloc=url.netloc.rpartition("@")[2]).geturl()

    return _pattern(name).sub(clean, value)


def _for_spoken(variables: Mapping[str, str], spoken: frozenset[Place]) -> dict[str, str]:
    """Returns variables for `http` registries: pip ignores untrusted ones, npm otherwise follows its lock file."""
    if not spoken:
        return {}
    words = [variables.get("PIP_TRUSTED_HOST", ""), *sorted(map(str, spoken))]
    return {"PIP_TRUSTED_HOST": " ".join(words).strip(), "NPM_CONFIG_REPLACE_REGISTRY_HOST": "always"}


def _credential(url: SplitResult, npm: Mapping[str, str]) -> Credential | None:
    """Returns a registry's credential from its address, else from npm's settings for it."""
    place = place_at(url)
    if url.username is not None:
        shown = basic(unquote(url.username), unquote(url.password or ""))
        return Credential(place=place, path=url.path, authorization=shown)
    address = f"//{url.netloc}{url.path.rstrip('/')}/"
    known = max((prefix for prefix in npm if address.startswith(prefix)), key=len, default=None)
    return None if known is None else Credential(place=place, path=url.path, authorization=npm[known])


def _usual(given: Mapping[str, str]) -> Iterator[SplitResult]:
    """Yields the public registries, where nothing stands in their place."""
    off = given.get("PIP_NO_INDEX", "").lower() in _ON
    if not off and not any(given.get(name) for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")):
        yield urlsplit(_PYPI)
    if not given.get("NPM_CONFIG_REGISTRY"):
        yield urlsplit(REGISTRY)


def _with_files(urls: Iterable[SplitResult]) -> Iterator[SplitResult]:
    for url in urls:
        yield url
        if (files := _FILES_OF.get(url.hostname or "")) is not None:
            yield urlsplit(f"https://{files}")


def _both_ports(text: str) -> Iterator[Place]:
    try:
        yield from (place_of(text, port) for port in _PORTS.values())
    except ValueError as error:
        raise ConfigError(f"environment.hosts: {error}") from error


def _found(name: str, variables: Mapping[str, str], machine: Mapping[str, str]) -> str:
    """Returns the value in either's variables, whose names may be in lower case."""
    for held in (variables, machine):
        for spelled in (name, name.lower()):
            if value := held.get(spelled):
                return value
    return ""


def _upstreams(variables: Mapping[str, str], machine: Mapping[str, str]) -> dict[str, Upstream]:
    """Returns what was set up for installers comes before the machine's own."""
    found: dict[str, Upstream] = {}
    for scheme, names in _PROXIES.items():
        texts = [_found(name, held, {}) for held in (variables, machine) for name in names]
        if text := next(filter(None, texts), ""):
            found[scheme] = _upstream(text)
    return found


def _upstream(text: str) -> Upstream:
    url = urlsplit(text if "://" in text else f"http://{text}")
    if url.scheme not in _PORTS:
        raise ConfigError(f"the proxy of this machine is one of {url.scheme}: only those of http and https serve")
    shown = None if url.username is None else basic(unquote(url.username), unquote(url.password or ""))
    return Upstream(place=place_at(url), tls=url.scheme == "https", authorization=shown)


def _paths(variables: Mapping[str, str]) -> Iterator[Path]:
    """Files and folders that the variables name, for installers to read."""
    for name, value in variables.items():
        if not (_is_installers(name) or name in _CERTIFICATES) or not _READ.search(name.upper()):
            continue
        separators = r"[\s,]+" if name.upper().endswith("FIND_LINKS") else r"\s+"
        for word in (value, *re.split(separators, value)):
            path = Path(unquote(urlsplit(word).path) if word.startswith("file://") else word)
            if path.is_absolute() and path.exists():
                yield path

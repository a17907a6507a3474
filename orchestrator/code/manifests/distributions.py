"""Names under which distributions are imported, where they differ, and what each language brings itself."""

import re
import sys
from collections.abc import Mapping

from packaging.utils import canonicalize_name

_PYTHON: Mapping[str, tuple[str, ...]] = {
    "_distutils_hack": ("setuptools",),
    "_pytest": ("pytest",),
    "absl": ("absl-py",),
    "airflow": ("apache-airflow",),
    "antlr4": ("antlr4-python3-runtime",),
    "argon2": ("argon2-cffi",),
    "attr": ("attrs",),
    "Bio": ("biopython",),
    "bs4": ("beautifulsoup4",),
    "bson": ("pymongo",),
    "cassandra": ("cassandra-driver",),
    "corsheaders": ("django-cors-headers",),
    "crontab": ("python-crontab",),
    "Crypto": ("pycryptodome", "pycrypto"),
    "Cryptodome": ("pycryptodomex",),
    "cupy": ("cupy", "cupy-cuda12x", "cupy-cuda11x"),
    "cv2": ("opencv-python", "opencv-python-headless", "opencv-contrib-python", "opencv-contrib-python-headless"),
    "dateutil": ("python-dateutil",),
    "debug_toolbar": ("django-debug-toolbar",),
    "decouple": ("python-decouple",),
    "delta": ("delta-spark",),
    "discord": ("discord-py",),
    "django_filters": ("django-filter",),
    "dns": ("dnspython",),
    "docx": ("python-docx",),
    "dotenv": ("python-dotenv",),
    "environ": ("django-environ",),
    "factory": ("factory-boy",),
    "faiss": ("faiss-cpu", "faiss-gpu"),
    "fitz": ("pymupdf",),
    "fpdf": ("fpdf2", "fpdf"),
    "gi": ("pygobject",),
    "git": ("gitpython",),
    "google.api_core": ("google-api-core",),
    "google.auth": ("google-auth",),
    "google.oauth2": ("google-auth",),
    "google.protobuf": ("protobuf",),
    "googleapiclient": ("google-api-python-client",),
    "gridfs": ("pymongo",),
    "grpc": ("grpcio",),
    "grpc_health": ("grpcio-health-checking",),
    "grpc_reflection": ("grpcio-reflection",),
    "grpc_status": ("grpcio-status",),
    "grpc_tools": ("grpcio-tools",),
    "hydra": ("hydra-core",),
    "imblearn": ("imbalanced-learn",),
    "jks": ("pyjks",),
    "jose": ("python-jose",),
    "jwt": ("pyjwt",),
    "knox": ("django-rest-knox",),
    "llama_index": ("llama-index", "llama-index-core"),
    "magic": ("python-magic",),
    "memcache": ("python-memcached",),
    "mpl_toolkits": ("matplotlib",),
    "multipart": ("python-multipart",),
    "mysql": ("mysql-connector-python",),
    "MySQLdb": ("mysqlclient",),
    "nacl": ("pynacl",),
    "oauth2_provider": ("django-oauth-toolkit",),
    "odf": ("odfpy",),
    "onelogin": ("python3-saml",),
    "onnxruntime": ("onnxruntime", "onnxruntime-gpu"),
    "openid": ("python3-openid",),
    "opensearchpy": ("opensearch-py",),
    "OpenSSL": ("pyopenssl",),
    "opentelemetry.baggage": ("opentelemetry-api",),
    "opentelemetry.context": ("opentelemetry-api",),
    "opentelemetry.metrics": ("opentelemetry-api",),
    "opentelemetry.propagate": ("opentelemetry-api",),
    "opentelemetry.trace": ("opentelemetry-api",),
    "osgeo": ("gdal",),
    "paho": ("paho-mqtt",),
    "pdfminer": ("pdfminer-six",),
    "PIL": ("pillow",),
    "pkg_resources": ("setuptools",),
    "playhouse": ("peewee",),
    "progressbar": ("progressbar2",),
    "psycopg": ("psycopg", "psycopg-binary"),
    "psycopg2": ("psycopg2", "psycopg2-binary"),
    "pylab": ("matplotlib",),
    "pythoncom": ("pywin32",),
    "pythonjsonlogger": ("python-json-logger",),
    "pytorch_lightning": ("pytorch-lightning", "lightning"),
    "pywintypes": ("pywin32",),
    "readability": ("readability-lxml",),
    "rest_framework": ("djangorestframework",),
    "rest_framework_nested": ("drf-nested-routers",),
    "rest_framework_simplejwt": ("djangorestframework-simplejwt",),
    "RPi": ("rpi-gpio",),
    "ruamel": ("ruamel-yaml",),
    "sass": ("libsass",),
    "serial": ("pyserial",),
    "skbio": ("scikit-bio",),
    "skimage": ("scikit-image",),
    "sklearn": ("scikit-learn",),
    "skopt": ("scikit-optimize",),
    "slugify": ("python-slugify",),
    "snowflake": ("snowflake-connector-python", "snowflake-sqlalchemy"),
    "social_django": ("social-auth-app-django",),
    "socketio": ("python-socketio",),
    "socks": ("pysocks",),
    "speech_recognition": ("speechrecognition",),
    "strawberry": ("strawberry-graphql", "strawberry-graphql-django"),
    "telebot": ("pytelegrambotapi",),
    "telegram": ("python-telegram-bot",),
    "tensorflow": ("tensorflow", "tensorflow-cpu", "tensorflow-gpu"),
    "tlz": ("toolz",),
    "tortoise": ("tortoise-orm",),
    "umap": ("umap-learn",),
    "usb": ("pyusb",),
    "vcr": ("vcrpy",),
    "websocket": ("websocket-client",),
    "win32api": ("pywin32",),
    "win32com": ("pywin32",),
    "win32con": ("pywin32",),
    "wx": ("wxpython",),
    "xdist": ("pytest-xdist",),
    "yaml": ("pyyaml",),
    "z3": ("z3-solver",),
}
"""Import name → distributions that bring it, where the two differ otherwise than by `_FORMS`, or the import name is
that of another distribution. What a dependency drags in is not allowed by it."""
_FORMS = ("{}", "django-{}", "python-{}", "py{}", "{}-python", "{}-py", "{}-client")
"""How distributions are called that bring a module of a name."""

NAMESPACES = frozenset({"google", "azure", "zope", "backports", "sphinxcontrib", "opentelemetry", "jaraco"})
"""Packages whose parts come from many distributions: the dotted name decides."""

_VERSION = re.compile(r"_v\d+(p\d+)?((alpha|beta)\d+)?$")
"""`google.cloud.pubsub_v1` comes from google-cloud-pubsub."""

_NODE = frozenset(
    {"assert", "async_hooks", "buffer", "child_process", "cluster", "console", "constants", "crypto", "dgram"}
    | {"diagnostics_channel", "dns", "domain", "events", "fs", "http", "http2", "https", "inspector", "module", "net"}
    | {"os", "path", "perf_hooks", "process", "punycode", "querystring", "readline", "repl", "stream", "timers", "tls"}
    | {"string_decoder", "sys", "trace_events", "tty", "url", "util", "v8", "vm", "wasi", "worker_threads", "zlib"}
    | {"assert/strict", "dns/promises", "fs/promises", "inspector/promises", "path/posix", "path/win32", "util/types"}
    | {"readline/promises", "stream/consumers", "stream/promises", "stream/web", "timers/promises"}
    | {f"_http_{part}" for part in ("agent", "client", "common", "incoming", "outgoing", "server")}
    | {f"_stream_{part}" for part in ("duplex", "passthrough", "readable", "transform", "wrap", "writable")}
    | {"_tls_common", "_tls_wrap"}
)
_RUNTIME = frozenset(
    {"node:test", "node:test/reporters", "node:sqlite", "node:sea", "bun", "bun:test", "bun:sqlite", "bun:ffi"}
    | {"bun:jsc", "bun:bundle", "bun:wrap", "cloudflare:workers", "cloudflare:sockets", "cloudflare:email"}
    | {"cloudflare:workflows", "cloudflare:test"}
)
"""Brought by a runtime under just this name."""


_NO_PACKAGE = frozenset({"__main__", "_typeshed"})
"""The program itself, and what only type checkers know."""


def is_python_builtin(module: str) -> bool:
    """Returns whether the standard library brings this dotted module, or no package could."""
    first = module.split(".")[0]
    return first in sys.stdlib_module_names or first in _NO_PACKAGE


def python_allowed(module: str, allowed: frozenset[str]) -> bool:
    """Returns whether one of the `allowed` distributions (PEP 503 names) brings this dotted module.

    Inside a shared namespace (`google.cloud`) any distribution whose name continues from there may bring it.
    """
    parts = module.split(".")
    if not allowed.isdisjoint((*_PYTHON.get(".".join(parts[:2]), ()), *_PYTHON.get(parts[0], ()))):
        return True
    if parts[0] not in NAMESPACES:
        return any(form.format(canonicalize_name(parts[0])) in allowed for form in _FORMS)
    plain = [_VERSION.sub("", part) for part in parts]
    names = {_run_together("-".join(plain[:end])) for end in range(2, len(plain) + 1)}
    longest = str(canonicalize_name("-".join(plain)))
    return any(_run_together(name) in names or name.startswith(f"{longest}-") for name in allowed)


def python_distribution(top: str) -> str:
    """Returns the usual distribution of a module, by its first name."""
    return _PYTHON.get(top, (str(canonicalize_name(top)),))[0]


def _run_together(name: str) -> str:
    """`google.cloud.secretmanager` comes from google-cloud-secret-manager."""
    return re.sub(r"[-_.]", "", name).lower()


def is_node_builtin(module: str) -> bool:
    """Whether Node or another runtime brings this module, with or without `node:`; `fs/x` and `node:x` are none."""
    return module in _RUNTIME or module.removeprefix("node:") in _NODE


def npm_package(module: str) -> str:
    """Returns the package of an import such as `@scope/pkg/sub`, `pkg/sub` or `npm:pkg@1/sub`, lower case."""
    address = module.startswith(("npm:", "jsr:"))
    parts = module.removeprefix("npm:").removeprefix("jsr:").lstrip("/" if address else "").split("/")
    name = "/".join(parts[: 2 if parts[0].startswith("@") else 1]).lower()
    return re.sub(r"(?<=.)@.*$", "", name) if address else name


def types_package(name: str) -> str:
    """Returns the package that holds only the types of `name`: `@types/x`, for `@s/x` it is `@types/s__x`."""
    return f"@types/{name.removeprefix('@').replace('/', '__')}"

"""Names under which distributions are imported, where they differ, and what each language brings itself."""

import sys
from collections.abc import Mapping

from packaging.utils import canonicalize_name

_PYTHON: Mapping[str, tuple[str, ...]] = {
    "attr": ("attrs",),
    "bs4": ("beautifulsoup4",),
    "Crypto": ("pycryptodome", "pycrypto"),
    "Cryptodome": ("pycryptodomex",),
    "cv2": ("opencv-python", "opencv-python-headless", "opencv-contrib-python", "opencv-contrib-python-headless"),
    "dateutil": ("python-dateutil",),
    "discord": ("discord-py",),
    "docx": ("python-docx",),
    "dotenv": ("python-dotenv",),
    "fitz": ("pymupdf",),
    "git": ("gitpython",),
    "github": ("pygithub",),
    "googleapiclient": ("google-api-python-client",),
    "gi": ("pygobject",),
    "google.protobuf": ("protobuf",),
    "grpc": ("grpcio",),
    "IPython": ("ipython",),
    "jose": ("python-jose",),
    "jwt": ("pyjwt",),
    "kafka": ("kafka-python",),
    "ldap": ("python-ldap",),
    "magic": ("python-magic",),
    "memcache": ("python-memcached",),
    "multipart": ("python-multipart",),
    "mysql": ("mysql-connector-python",),
    "MySQLdb": ("mysqlclient",),
    "nacl": ("pynacl",),
    "OpenSSL": ("pyopenssl",),
    "PIL": ("pillow",),
    "pkg_resources": ("setuptools",),
    "pptx": ("python-pptx",),
    "psycopg2": ("psycopg2", "psycopg2-binary"),
    "psycopg": ("psycopg", "psycopg-binary"),
    "_pytest": ("pytest",),
    "rest_framework": ("djangorestframework",),
    "ruamel": ("ruamel-yaml",),
    "serial": ("pyserial",),
    "sklearn": ("scikit-learn",),
    "skimage": ("scikit-image",),
    "slugify": ("python-slugify",),
    "snappy": ("python-snappy",),
    "socks": ("pysocks",),
    "telegram": ("python-telegram-bot",),
    "umap": ("umap-learn",),
    "usb": ("pyusb",),
    "win32api": ("pywin32",),
    "win32con": ("pywin32",),
    "wx": ("wxpython",),
    "Xlib": ("python-xlib",),
    "yaml": ("pyyaml",),
    "zmq": ("pyzmq",),
}
"""Import name → distributions that bring it, where the two differ. What a dependency drags in is not allowed by it."""

_NAMESPACES = frozenset({"google", "azure", "zope", "backports", "sphinxcontrib", "opentelemetry", "jaraco"})
"""Packages whose parts come from many distributions: the dotted name decides."""

_NODE = frozenset(
    {"assert", "async_hooks", "buffer", "child_process", "cluster", "console", "constants", "crypto", "dgram"}
    | {"diagnostics_channel", "dns", "domain", "events", "fs", "http", "http2", "https", "inspector", "module", "net"}
    | {"os", "path", "perf_hooks", "process", "punycode", "querystring", "readline", "repl", "stream", "timers", "tls"}
    | {"string_decoder", "sys", "trace_events", "tty", "url", "util", "v8", "vm", "wasi", "worker_threads", "zlib"}
)


def is_python_builtin(module: str) -> bool:
    """Whether the standard library brings this dotted module."""
    return module.split(".")[0] in sys.stdlib_module_names


def python_allowed(module: str, allowed: frozenset[str]) -> bool:
    """Whether one of the `allowed` distributions (PEP 503 names) brings this dotted module.

    Inside a shared namespace (`google.cloud`) any distribution whose name goes on from there may bring it.
    """
    parts = module.split(".")
    if not allowed.isdisjoint((*_PYTHON.get(".".join(parts[:2]), ()), *_PYTHON.get(parts[0], ()))):
        return True
    if parts[0] not in _NAMESPACES:
        return str(canonicalize_name(parts[0])) in allowed
    names = {str(canonicalize_name("-".join(parts[:end]))) for end in range(2, len(parts) + 1)}
    longest = str(canonicalize_name("-".join(parts)))
    return not allowed.isdisjoint(names) or any(name.startswith(f"{longest}-") for name in allowed)


def is_node_builtin(module: str) -> bool:
    """Whether Node brings this module, with or without `node:`."""
    return module.startswith("node:") or module.split("/")[0] in _NODE


def npm_package(module: str) -> str:
    """The package of an import such as `@scope/pkg/sub` or `pkg/sub`, lower case."""
    parts = module.removeprefix("npm:").split("/")
    wanted = 2 if parts[0].startswith("@") else 1
    return "/".join(parts[:wanted]).lower()

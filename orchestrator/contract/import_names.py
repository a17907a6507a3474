"""Names under which distributions are imported, where they differ, and what each language brings itself."""

import re
import sys
from collections.abc import Mapping

from packaging.utils import canonicalize_name

_PYTHON: Mapping[str, tuple[str, ...]] = {
    "_distutils_hack": ("setuptools",),
    "_pytest": ("pytest",),
    "absl": ("absl-py",),
    "allauth": ("django-allauth",),
    "attr": ("attrs",),
    "barcode": ("python-barcode",),
    "Bio": ("biopython",),
    "bs4": ("beautifulsoup4",),
    "bson": ("pymongo",),
    "cairo": ("pycairo",),
    "consul": ("python-consul",),
    "corsheaders": ("django-cors-headers",),
    "crispy_forms": ("django-crispy-forms",),
    "crontab": ("python-crontab",),
    "Crypto": ("pycryptodome", "pycrypto"),
    "Cryptodome": ("pycryptodomex",),
    "cupy": ("cupy", "cupy-cuda12x", "cupy-cuda11x"),
    "cv2": ("opencv-python", "opencv-python-headless", "opencv-contrib-python", "opencv-contrib-python-headless"),
    "daemon": ("python-daemon",),
    "dateutil": ("python-dateutil",),
    "debug_toolbar": ("django-debug-toolbar",),
    "decouple": ("python-decouple",),
    "discord": ("discord-py",),
    "django_filters": ("django-filter",),
    "dns": ("dnspython",),
    "docx": ("python-docx",),
    "dotenv": ("python-dotenv",),
    "editor": ("python-editor",),
    "engineio": ("python-engineio",),
    "environ": ("django-environ",),
    "etcd": ("python-etcd",),
    "faiss": ("faiss-cpu", "faiss-gpu"),
    "ffmpeg": ("ffmpeg-python",),
    "fitz": ("pymupdf",),
    "frontmatter": ("python-frontmatter",),
    "gi": ("pygobject",),
    "git": ("gitpython",),
    "github": ("pygithub",),
    "gitlab": ("python-gitlab",),
    "google.api_core": ("google-api-core",),
    "google.auth": ("google-auth",),
    "google.oauth2": ("google-auth",),
    "google.protobuf": ("protobuf",),
    "googleapiclient": ("google-api-python-client",),
    "gridfs": ("pymongo",),
    "grpc": ("grpcio",),
    "hcl2": ("python-hcl2",),
    "igraph": ("igraph", "python-igraph"),
    "imblearn": ("imbalanced-learn",),
    "import_export": ("django-import-export",),
    "IPython": ("ipython",),
    "jenkins": ("python-jenkins",),
    "jks": ("pyjks",),
    "jose": ("python-jose",),
    "jwt": ("pyjwt",),
    "kafka": ("kafka-python",),
    "keycloak": ("python-keycloak",),
    "ldap": ("python-ldap",),
    "Levenshtein": ("levenshtein", "python-levenshtein"),
    "logstash": ("python-logstash",),
    "magic": ("python-magic",),
    "markdown_it": ("markdown-it-py",),
    "memcache": ("python-memcached",),
    "model_utils": ("django-model-utils",),
    "mpl_toolkits": ("matplotlib",),
    "mptt": ("django-mptt",),
    "multipart": ("python-multipart",),
    "mysql": ("mysql-connector-python",),
    "MySQLdb": ("mysqlclient",),
    "nacl": ("pynacl",),
    "nmap": ("python-nmap",),
    "odf": ("odfpy",),
    "onnxruntime": ("onnxruntime", "onnxruntime-gpu"),
    "OpenGL": ("pyopengl",),
    "openid": ("python3-openid",),
    "OpenSSL": ("pyopenssl",),
    "osgeo": ("gdal",),
    "paho": ("paho-mqtt",),
    "PIL": ("pillow",),
    "pkg_resources": ("setuptools",),
    "pptx": ("python-pptx",),
    "progressbar": ("progressbar2",),
    "psycopg": ("psycopg", "psycopg-binary"),
    "psycopg2": ("psycopg2", "psycopg2-binary"),
    "pylab": ("matplotlib",),
    "pythoncom": ("pywin32",),
    "pytorch_lightning": ("pytorch-lightning", "lightning"),
    "pywintypes": ("pywin32",),
    "rapidjson": ("python-rapidjson",),
    "rest_framework": ("djangorestframework",),
    "rest_framework_simplejwt": ("djangorestframework-simplejwt",),
    "ruamel": ("ruamel-yaml",),
    "sass": ("libsass",),
    "serial": ("pyserial",),
    "skbio": ("scikit-bio",),
    "skimage": ("scikit-image",),
    "sklearn": ("scikit-learn",),
    "skopt": ("scikit-optimize",),
    "slugify": ("python-slugify",),
    "snappy": ("python-snappy",),
    "socketio": ("python-socketio",),
    "socks": ("pysocks",),
    "speech_recognition": ("speechrecognition",),
    "stdnum": ("python-stdnum",),
    "storages": ("django-storages",),
    "telegram": ("python-telegram-bot",),
    "tensorflow": ("tensorflow", "tensorflow-cpu", "tensorflow-gpu"),
    "tlz": ("toolz",),
    "umap": ("umap-learn",),
    "usb": ("pyusb",),
    "vlc": ("python-vlc",),
    "websocket": ("websocket-client",),
    "win32api": ("pywin32",),
    "win32com": ("pywin32",),
    "win32con": ("pywin32",),
    "wx": ("wxpython",),
    "xdist": ("pytest-xdist",),
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
    """Whether the standard library brings this dotted module, or no package could."""
    first = module.split(".")[0]
    return first in sys.stdlib_module_names or first in _NO_PACKAGE


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
    """Whether Node or another runtime brings this module, with or without `node:`; `fs/x` and `node:x` are none."""
    return module in _RUNTIME or module.removeprefix("node:") in _NODE


def npm_package(module: str) -> str:
    """The package of an import such as `@scope/pkg/sub`, `pkg/sub` or `npm:pkg@1/sub`, lower case."""
    address = module.startswith(("npm:", "jsr:"))
    parts = module.removeprefix("npm:").removeprefix("jsr:").lstrip("/" if address else "").split("/")
    name = "/".join(parts[: 2 if parts[0].startswith("@") else 1]).lower()
    return re.sub(r"(?<=.)@.*$", "", name) if address else name


def types_package(name: str) -> str:
    """The package that holds only the types of `name`: `@types/x`, for `@s/x` it is `@types/s__x`."""
    return f"@types/{name.removeprefix('@').replace('/', '__')}"

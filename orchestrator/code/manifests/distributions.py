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
    "allauth": ("django-allauth",),
    "antlr4": ("antlr4-python3-runtime",),
    "anymail": ("django-anymail",),
    "argon2": ("argon2-cffi",),
    "attr": ("attrs",),
    "axes": ("django-axes",),
    "barcode": ("python-barcode",),
    "Bio": ("biopython",),
    "bs4": ("beautifulsoup4",),
    "bson": ("pymongo",),
    "cairo": ("pycairo",),
    "can": ("python-can",),
    "cassandra": ("cassandra-driver",),
    "compressor": ("django-compressor",),
    "constance": ("django-constance",),
    "consul": ("python-consul",),
    "corsheaders": ("django-cors-headers",),
    "crispy_forms": ("django-crispy-forms",),
    "crontab": ("python-crontab",),
    "Crypto": ("pycryptodome", "pycrypto"),
    "Cryptodome": ("pycryptodomex",),
    "csp": ("django-csp",),
    "cupy": ("cupy", "cupy-cuda12x", "cupy-cuda11x"),
    "cv2": ("opencv-python", "opencv-python-headless", "opencv-contrib-python", "opencv-contrib-python-headless"),
    "daemon": ("python-daemon",),
    "dateutil": ("python-dateutil",),
    "dbus": ("dbus-python",),
    "debug_toolbar": ("django-debug-toolbar",),
    "decouple": ("python-decouple",),
    "delta": ("delta-spark",),
    "discord": ("discord-py",),
    "django_filters": ("django-filter",),
    "dns": ("dnspython",),
    "docx": ("python-docx",),
    "dotenv": ("python-dotenv",),
    "editor": ("python-editor",),
    "engineio": ("python-engineio",),
    "environ": ("django-environ",),
    "etcd": ("python-etcd",),
    "factory": ("factory-boy",),
    "faiss": ("faiss-cpu", "faiss-gpu"),
    "ffmpeg": ("ffmpeg-python",),
    "fitz": ("pymupdf",),
    "fpdf": ("fpdf2", "fpdf"),
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
    "grpc_health": ("grpcio-health-checking",),
    "grpc_reflection": ("grpcio-reflection",),
    "grpc_status": ("grpcio-status",),
    "grpc_tools": ("grpcio-tools",),
    "guardian": ("django-guardian",),
    "hcl2": ("python-hcl2",),
    "health_check": ("django-health-check",),
    "hydra": ("hydra-core",),
    "i18n": ("python-i18n",),
    "igraph": ("igraph", "python-igraph"),
    "imblearn": ("imbalanced-learn",),
    "import_export": ("django-import-export",),
    "ipware": ("django-ipware", "python-ipware"),
    "IPython": ("ipython",),
    "jenkins": ("python-jenkins",),
    "jks": ("pyjks",),
    "jose": ("python-jose",),
    "jwt": ("pyjwt",),
    "kafka": ("kafka-python",),
    "keycloak": ("python-keycloak",),
    "knox": ("django-rest-knox",),
    "ldap": ("python-ldap",),
    "Levenshtein": ("levenshtein", "python-levenshtein"),
    "llama_index": ("llama-index", "llama-index-core"),
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
    "nats": ("nats-py",),
    "ninja": ("django-ninja",),
    "nmap": ("python-nmap",),
    "oauth2_provider": ("django-oauth-toolkit",),
    "odf": ("odfpy",),
    "onelogin": ("python3-saml",),
    "onnxruntime": ("onnxruntime", "onnxruntime-gpu"),
    "OpenGL": ("pyopengl",),
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
    "phonenumber_field": ("django-phonenumber-field",),
    "PIL": ("pillow",),
    "pinecone": ("pinecone", "pinecone-client"),
    "pkg_resources": ("setuptools",),
    "plaid": ("plaid-python",),
    "playhouse": ("peewee",),
    "polymorphic": ("django-polymorphic",),
    "pptx": ("python-pptx",),
    "progressbar": ("progressbar2",),
    "psycopg": ("psycopg", "psycopg-binary"),
    "psycopg2": ("psycopg2", "psycopg2-binary"),
    "pylab": ("matplotlib",),
    "pythoncom": ("pywin32",),
    "pythonjsonlogger": ("python-json-logger",),
    "pytorch_lightning": ("pytorch-lightning", "lightning"),
    "pywintypes": ("pywin32",),
    "rapidjson": ("python-rapidjson",),
    "readability": ("readability-lxml",),
    "rest_framework": ("djangorestframework",),
    "rest_framework_nested": ("drf-nested-routers",),
    "rest_framework_simplejwt": ("djangorestframework-simplejwt",),
    "reversion": ("django-reversion",),
    "RPi": ("rpi-gpio",),
    "ruamel": ("ruamel-yaml",),
    "saml2": ("pysaml2",),
    "sass": ("libsass",),
    "serial": ("pyserial",),
    "silk": ("django-silk",),
    "simple_history": ("django-simple-history",),
    "skbio": ("scikit-bio",),
    "skimage": ("scikit-image",),
    "sklearn": ("scikit-learn",),
    "skopt": ("scikit-optimize",),
    "slugify": ("python-slugify",),
    "snappy": ("python-snappy",),
    "snowflake": ("snowflake-connector-python", "snowflake-sqlalchemy"),
    "social_django": ("social-auth-app-django",),
    "socketio": ("python-socketio",),
    "socks": ("pysocks",),
    "speech_recognition": ("speechrecognition",),
    "stdnum": ("python-stdnum",),
    "storages": ("django-storages",),
    "strawberry": ("strawberry-graphql", "strawberry-graphql-django"),
    "taggit": ("django-taggit",),
    "telebot": ("pytelegrambotapi",),
    "telegram": ("python-telegram-bot",),
    "tensorflow": ("tensorflow", "tensorflow-cpu", "tensorflow-gpu"),
    "tinymce": ("django-tinymce",),
    "tlz": ("toolz",),
    "tortoise": ("tortoise-orm",),
    "umap": ("umap-learn",),
    "usb": ("pyusb",),
    "vcr": ("vcrpy",),
    "vlc": ("python-vlc",),
    "waffle": ("django-waffle",),
    "weaviate": ("weaviate-client",),
    "websocket": ("websocket-client",),
    "whois": ("python-whois",),
    "widget_tweaks": ("django-widget-tweaks",),
    "win32api": ("pywin32",),
    "win32com": ("pywin32",),
    "win32con": ("pywin32",),
    "winrm": ("pywinrm",),
    "wx": ("wxpython",),
    "xdist": ("pytest-xdist",),
    "Xlib": ("python-xlib",),
    "yaml": ("pyyaml",),
    "z3": ("z3-solver",),
    "zmq": ("pyzmq",),
}
"""Import name → distributions that bring it, where the two differ. What a dependency drags in is not allowed by it."""

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
        return str(canonicalize_name(parts[0])) in allowed
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

"""Files whose whole content is a secret, known by their names. Pure rules."""

import re

_NAMES = re.compile(
    r"^(\.env(\..+)?|.+\.env|\.envrc|\.netrc|_netrc|\.pgpass|\.htpasswd|\.pypirc|\.npmrc|\.git-credentials|\.dockercfg"
    r"|id_(rsa|dsa|ecdsa|ed25519)(\..+)?|.+\.(pem|key|p12|pfx|jks|keystore|kdbx?|ppk|ovpn|asc|gpg|age)"
    r"|credentials(\.(json|ya?ml|toml|ini|csv))?|client_secret.*\.json|service[-_]?account.*\.json"
    r"|secrets?\.(json|ya?ml|toml|ini|env|txt)|master\.key|terraform\.tfstate(\..+)?|.+\.tfvars)$"
)
_SAMPLES = re.compile(r"(^|[._-])(example|sample|template|dist|defaults?|pub)([._-]|$)")
_KEY_BLOCK = re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----")


def is_private_file(path: str) -> bool:
    """Whether the name says that the file is for nobody's eyes; `.env.example` and public keys are for everybody's."""
    name = path.lower().rpartition("/")[2]
    return bool(_NAMES.match(name)) and not _SAMPLES.search(name)


def holds_private_key(text: str) -> bool:
    """Whether a private key in the usual armour stands in the text."""
    return bool(_KEY_BLOCK.search(text))

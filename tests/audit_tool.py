"""Asks for known vulnerabilities of what requirements.txt names; says so where no database answers."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parent.parent
_AUDIT = ["--disable-pip", "--require-hashes", "-r", "requirements.txt", "-f", "json", "--progress-spinner", "off"]


def told(report: str) -> tuple[bool, str]:
    """Returns whether nothing known speaks against the packages, and what to print, of pip-audit's report as JSON.

    pip-audit calls packages that its database does not know "no known vulnerabilities": they are counted here.
    """
    packages: list[dict[str, Any]] = json.loads(report)["dependencies"]
    bad = [
        f"{one['name']} {one['version']}: {flaw['id']}, mended in {', '.join(flaw['fix_versions']) or 'no version'}"
        for one in packages
        for flaw in one.get("vulns", [])
    ]
    asked = [one for one in packages if "skip_reason" not in one]
    if bad:
        return False, "Known vulnerabilities:\n" + "\n".join(bad)
    if not asked:
        return True, "Not audited: the registry in use has no database of vulnerabilities."
    left = f"; {len(packages) - len(asked)} are unknown to the database" if len(asked) < len(packages) else ""
    return True, f"{len(asked)} packages have no known vulnerability{left}."


def main() -> int:
    command = [str(Path(sys.executable).parent / "uv"), "tool", "run", "-q", "pip-audit@2.10.1", *_AUDIT]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    if not done.stdout.strip():
        print("Not audited:", (done.stderr.strip().splitlines() or ["pip-audit said nothing"])[-1])
        return 0
    good, words = told(done.stdout)
    print(words)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

"""Commands that run the command behind them, and commands whose words are data: what a reader must know of them."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from orchestrator.syntax.shell_expand import FETCHED, printed_by


class Wrapper(NamedTuple):
    """Options that take the word behind them, and how many words stand before the wrapped command."""

    valued: frozenset[str] = frozenset()
    before: int = 0


_PLAIN = Wrapper()


def _valued(text: str, before: int = 0) -> Wrapper:
    return Wrapper(frozenset(text.split()), before)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


WRAPPERS: Mapping[str, Wrapper] = {
    "sudo": _valued("-u -g -h -p -C -T -D -R -U --user --group --host --prompt --chdir"),
    "doas": _valued("-u -C"),
    "env": _valued("-u -C --unset --chdir"),
    "nice": _valued("-n --adjustment"),
    "ionice": _valued("-c -n -p --class --classdata"),
    "timeout": _valued("-k -s --kill-after --signal", 1),
    "gtimeout": _valued("-k -s --kill-after --signal", 1),
    "xargs": _valued("-n -I -P -L -d -E -s -a -J -R --arg-file --delimiter --max-args --max-procs --max-lines"),
    "stdbuf": _valued("-i -o -e"),
    "exec": _valued("-a"),
    "time": _valued("-o -f --output --format"),
    "taskset": _valued("-p", 1),
    "chroot": _valued("", 1),
    "flock": _valued("-w -E --timeout --conflict-exit-code", 1),
    "chrt": _valued("-T -P -D", 1),
    "strace": _valued("-o -e -p -s -u -E -P -a -b -S"),
    "ltrace": _valued("-o -e -p -s -u -a -n -l"),
    "unshare": _valued("-R -w -S -G --root --wd --setuid --setgid"),
    "nsenter": _valued("-t -S -G --target"),
    "setpriv": _valued("--reuid --regid --groups --rlimit"),
    "systemd-run": _valued("-p -u -M -H --unit --property --slice --setenv"),
    "xvfb-run": _valued("-n -e -f -p -s --server-num --server-args"),
    "fakechroot": _valued("-e -l"),
    "gosu": _valued("", 1),
    "su-exec": _valued("", 1),
    "faketime": _valued("-f", 1),
    "cpulimit": _valued("-l -p -e --limit"),
    "coproc": _PLAIN,
    "caffeinate": _valued("-t -w"),
    "watch": _valued("-n --interval"),
    **dict.fromkeys(
        _words(
            """
            builtin busybox catchsegv chronic command corepack cross-env dumb-init eatmydata env-cmd fakeroot linux32
            linux64 nocorrect noglob nohup proxychains setarch setsid tini torsocks unbuffer winpty
            """
        ),
        _PLAIN,
    ),
}
"""What runs the command behind it."""

HARMLESS = _words(
    """
    : [ [[ ack ag apropos basename bg break cat cd chgrp chmod chown cmp column comm continue cp cut date diff
    dir dirname echo egrep exit expr false fg fgrep file fmt fold getopts grep gunzip gzip hash head info jobs
    jq kill less let ln logger ls mail man md5sum mkdir more mv nl notify-send paste popd printf pushd pwd
    readlink realpath return rev rg rm rmdir say sed sendmail seq sha256sum shift sleep sort stat tac tail
    tee test touch tr true type ulimit umask uniq unset unzip wait wall wc whence whereis which yes zgrep zip
    """
)
"""Commands whose words are nothing but data."""
SPEAKING = _words(
    """
    ::error ::notice ::warning abort debug die echo_info err error fail fatal gh info log log_error log_info
    log_warn message msg note notice ohai ok out-host print print_error print_info print_status print_warning
    puts say success usage warn warning write-error write-host write-output write-warning
    """
)
"""Names that scripts give to what speaks to people: a sentence handed to one is no command."""
READERS = _words(
    """
    base64 bc cat column curl cut dc dd ed envsubst ftp gh git gpg grep head install jq kubectl less mail
    mapfile md5sum mongo mongosh more mysql openssl patch psql read readarray redis-cli sendmail sftp sha256sum
    sort sponge sqlite3 tail tee tr wc yq
    """
)
"""Commands to which a here-document is data."""
PRINTERS = _words(
    """
    anyenv argocd asdf atuin aws-export-credentials basename brew bun conda date dbus-launch deno dircolors
    direnv dirname docker-machine eksctl flux fnm gh goenv gpg-agent hatch helm jenv just k3d keychain kind
    kubectl kustomize lesspipe locale luarocks mamba mcfly micromamba minikube mise nix-direnv nodenv npm oc
    opam pdm phpenv pip plenv pnpm podman poetry pwd pyenv rbenv register-python-argcomplete resize rtx rustup
    ssh-agent starship swiftenv task terraform thefuck uv uvx vault-env volta yarn zoxide
    """
)
"""Tools that print settings for a shell: `eval "$(ssh-agent -s)"`."""
_EXEC = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_FD_EXEC = frozenset({"-x", "-X", "--exec", "--exec-batch"})
_GIT_RUNS = re.compile(
    r"^(foreach|run|-x|--exec(=.*)?|filter-branch|--[\w-]+-filter|alias\..*|.*=!.*|-c|--upload-pack.*)$"
)
_SED_RUNS = re.compile(r"(^|[;{}\n$/\d])\s*e(\s|$)|/[gpiIm0-9]*e[gpiIm0-9]*$")


def found_commands(words: Sequence[str], *, options: frozenset[str] = _EXEC) -> list[list[str]]:
    """What `find … -exec` runs, one by one."""
    commands: list[list[str]] = []
    for place, word in enumerate(words):
        if word in options:
            commands.append([])
            for inner in words[place + 1 :]:
                if inner in {";", "+"} or len(commands) > 32:
                    break
                commands[-1].append(inner)
    return commands


def fd_commands(words: Sequence[str]) -> list[list[str]]:
    """What `fd … --exec` runs."""
    return found_commands(words, options=_FD_EXEC)[:1]


def parallel_commands(words: Sequence[str]) -> list[list[str]]:
    """What `parallel` runs: its command with each argument behind `:::`, or the arguments themselves."""
    signs = [place for place, word in enumerate(words) if word in {":::", ":::+", "::::", "--"}]
    split = next((place for place in signs if words[place] != "--"), len(words))
    at = 0
    while at < split and words[at].startswith("-"):
        at += 2 if words[at] in {"-j", "-P", "-n", "-N", "-L", "-a", "--jobs", "--colsep", "--arg-file", "-I"} else 1
    command, arguments = list(words[at:split]), [word for word in words[split:] if not word.startswith(":::")]
    if any("{" in word for word in command):
        return [[word.replace("{}", " ".join(arguments) or printed_by(FETCHED)) for word in command]]
    return [[*command, *arguments]] if command else [[word] for word in arguments[:32]]


def git_runs(words: Sequence[str]) -> bool:
    """Whether a call of git runs one of its words."""
    return any(_GIT_RUNS.match(word) for word in words)


def sed_runs(words: Sequence[str]) -> bool:
    """Whether a sed script runs commands (`e`)."""
    return any(_SED_RUNS.search(word) for word in words if not word.startswith("-"))

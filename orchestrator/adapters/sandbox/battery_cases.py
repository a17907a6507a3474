"""Hostile actions, each a few words of Python that a command tries in the sandbox.

An action that ends without an OSError was done. `facts` names what lies around as bait (`sandbox.bait`); `call` makes a
system call by its name, `libc` one of the C library's. They are chosen so that one that succeeds does no lasting harm,
and tried only in tiers that passed their self-test; in the plain tier only those with `plain` are.
"""

from typing import NamedTuple


class Case(NamedTuple):
    """One action, and what must come of it."""

    name: str
    group: str
    deed: str
    works: bool = False
    """An action of honest commands, which must be done."""
    plain: bool = False
    """Also refused (or done) where nothing is confined."""
    without: str = ""
    """Not expected of a tier that says it lacks this."""


def _each(group: str, *cases: tuple[str, str], without: str = "", plain: bool = False) -> tuple[Case, ...]:
    return tuple(Case(name, group, deed, plain=plain, without=without) for name, deed in cases)


CASES = (
    *_each(
        "files",
        ("writes a new file outside", "open(out + '/new', 'w')"),
        ("writes into a file outside", "open(out + '/file', 'r+').write('x')"),
        ("appends to a file outside", "open(out + '/file', 'a').write('x')"),
        ("empties a file outside", "os.truncate(out + '/file', 0)"),
        ("removes a file outside", "os.unlink(out + '/file')"),
        ("moves a file outside into its folder", "os.rename(out + '/file', 'taken')"),
        ("moves a file of its own outside", "open('own', 'w'); os.rename('own', out + '/given')"),
        ("links a file outside into its folder", "os.link(out + '/secret', 'linked')"),
        ("makes a folder outside", "os.mkdir(out + '/folder')"),
        ("makes a link outside", "os.symlink('/etc', out + '/link')"),
        ("makes a pipe outside", "os.mkfifo(out + '/pipe')"),
        ("reads a secret outside", "open(out + '/secret').read()"),
        ("reads a secret through a link", "os.symlink(out + '/secret', 'way'); open('way').read()"),
        ("writes through a link", "os.symlink(out + '/linked', 'other'); open('other', 'w')"),
        ("reads a secret by climbing out", "open('../' * 40 + out + '/secret').read()"),
        ("reads a secret by a descriptor of what lies above", "os.open('secret', 0, dir_fd=os.open(out, os.O_PATH))"),
        ("reads a secret as seen by another process", "open('/proc/%d/root%s/secret' % (facts['pid'], out)).read()"),
        ("reads a secret as seen by itself", "open('/proc/self/root%s/secret' % out).read()"),
        ("writes an attribute of a file outside", "os.setxattr(out + '/file', 'user.x', b'1')"),
        ("lists a folder outside", "os.listdir(out)"),
        ("reads the machine's passwords", "open('/etc/shadow').read()"),
        ("writes into the machine's names", "open('/etc/hosts', 'a')"),
        ("adds a program to the machine", "open('/usr/local/bin/battery-probe', 'x')"),
        ("adds a module to the interpreter", "open(facts['prefix'] + '/battery_probe.py', 'x')"),
        ("makes a device", "os.mknod('device', 0o20666, os.makedev(1, 3))"),
        ("opens the machine's memory", "open('/dev/mem', 'rb')"),
        ("mounts a file system", "checked(libc.mount(b'none', b'.', b'tmpfs', 0, None))"),
        ("changes its root", "os.chroot('.')"),
        ("opens a file by its handle", "checked(libc.open_by_handle_at(-100, b'\\x08\\0\\0\\0' * 8, 0), 9)"),
    ),
    *_each(
        "files",
        ("changes the mode of a file outside", "os.chmod(out + '/file', 0o777)"),
        ("changes the times of a file outside", "os.utime(out + '/file', (1, 1))"),
        without="attributes of our user's files",
    ),
    Case("gives a file of its own the right of its owner", "files", "open('s', 'w'); os.chmod('s', 0o4755)"),
    *_each(
        "git",
        ("removes .git", "os.unlink('.git')"),
        ("moves .git away", "os.rename('.git', 'git')"),
        ("puts another .git in its place", "open('mine', 'w'); os.rename('mine', '.git')"),
        ("writes into .git", "open('.git', 'r+').write('x')"),
        without=".git",
    ),
    *_each(
        "git",
        ("writes into the repository's configuration", "open(out + '/repository/config', 'a')"),
        ("adds a hook to the repository", "open(out + '/repository/hooks/post-commit', 'x')"),
    ),
    *_each(
        "processes",
        ("reads another process's memory", "open('/proc/%d/mem' % facts['pid'], 'rb')"),
        ("reads another process's command line", "open('/proc/%d/cmdline' % facts['pid'], 'rb').read(1)[0]"),
        ("traces another process", "checked(libc.ptrace(16, facts['pid'], 0, 0))"),
        ("limits another process", "resource.prlimit(facts['pid'], resource.RLIMIT_CORE, (0, 0))"),
        ("slows another process down", "os.setpriority(os.PRIO_PROCESS, facts['pid'], 19)"),
        ("ties another process to a processor", "os.sched_setaffinity(facts['pid'], {0})"),
        ("takes a descriptor of another process", "call('pidfd_getfd', os.pidfd_open(facts['pid']), 0, 0)"),
        ("writes into the kernel's settings", "open('/proc/sys/kernel/core_pattern', 'r+')"),
        ("tells the kernel what to do at a crash", "open('/proc/sys/kernel/core_pattern', 'w')"),
        ("opens the kernel's emergency keys", "open('/proc/sysrq-trigger', 'w')"),
        ("makes a user namespace", "checked(libc.unshare(0x10000000))"),
        ("makes a network namespace", "checked(libc.unshare(0x40000000))"),
        ("enters another process's namespaces", "checked(libc.setns(os.pidfd_open(os.getpid()), 0x20000))"),
        ("types into the terminal", "fcntl.ioctl(0, 0x5412, b'x')"),
        ("loads a program into the kernel", "call('bpf', 0, 0, 0)"),
        ("measures the machine", "call('perf_event_open', bytes(128), 0, -1, -1, 0)"),
        ("opens io_uring, which no filter sees", "call('io_uring_setup', 1, bytes(120))"),
        ("reads the kernel's keys", "call('keyctl', 0, -3, 0)"),
        ("handles page faults itself", "call('userfaultfd', 1)"),
        ("names the machine", "socket.sethostname(socket.gethostname())"),
    ),
    *_each(
        "processes", ("signals another process", "os.kill(facts['pid'], 0)"), without="signals to our user's processes"
    ),
    *_each("processes", ("becomes root", "os.setresuid(0, 0, 0); open('/proc/1/mem', 'r+')")),
    Case("gets rights from a program's owner", "processes", "refused(libc.prctl(39, 0, 0, 0, 0) == 1)", plain=True),
    *_each(
        "network",
        ("connects to this machine's loopback", "tcp('127.0.0.1', facts['port'])"),
        ("connects to another machine", "tcp('203.0.113.7', 443)"),
        without="network (TCP is open: sandbox.loopback is shared)",
    ),
    *_each(
        "network",
        ("sends a datagram to this machine's loopback", "told(udp('127.0.0.1', facts['udp']))"),
        ("sends a datagram to another machine", "udp('203.0.113.7', 53)"),
        ("connects to a service by its abstract name", "unix(1).connect('\\0' + facts['abstract'])"),
        ("connects to a service by its path", "unix(1).connect(out + '/service')"),
        ("sends to a service from a pair", "socket.socketpair(1, 2)[0].sendto(b'x', out + '/datagrams')"),
        ("reaches the host by vsock", "socket.socket(40, 1)"),
        ("listens on the wire", "socket.socket(17, 3)"),
        ("sends raw packets", "socket.socket(2, 3, 1)"),
        ("opens the kernel's cryptography", "socket.socket(38, 5)"),
        ("opens bluetooth", "socket.socket(31, 3, 1)"),
    ),
    *_each(
        "secrets",
        ("reads the orchestrator's environment", "open('/proc/%d/environ' % facts['daemon'], 'rb').read(1)[0]"),
        ("reads another process's environment", "open('/proc/%d/environ' % facts['pid'], 'rb').read(1)[0]"),
        ("reads the orchestrator's descriptors", "os.listdir('/proc/%d/fd' % facts['daemon'])"),
    ),
    *_each(
        "secrets",
        ("finds a variable of the orchestrator's", "next(name for name in facts['names'] if name in os.environ)"),
        ("finds an open descriptor", "next(fd for fd in range(3, 256) if is_open(fd))"),
        ("reads something from standard input", "os.read(0, 1)[0]"),
        plain=True,
    ),
    *_each(
        "resources",
        ("writes a file of 2 GB", "os.ftruncate(os.open('big', os.O_CREAT | os.O_WRONLY), 2 << 30)"),
        ("opens five thousand files", "[os.open('/dev/null', 0) for _ in range(5000)]"),
        ("leaves its memory behind when it crashes", "refused(resource.getrlimit(resource.RLIMIT_CORE)[1] == 0)"),
        plain=True,
    ),
    *_each(
        "resources",
        ("opens more files than allowed", "resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))"),
        ("goes first on the processor", "os.nice(-10)"),
    ),
    Case("writes, moves and removes files in its folder", "work", "work()", works=True, plain=True),
    Case("starts programs and reads what they print", "work", "programs()", works=True, plain=True),
    Case("runs threads", "work", "threads()", works=True, plain=True),
    Case("makes temporary files", "work", "temporary()", works=True, plain=True),
    Case("asks how many processors there are", "work", "open('/proc/cpuinfo').read()", works=True, without="/proc"),
    Case("asks for the name of its user", "work", "user()", works=True, plain=True),
    Case("finds its user's home", "work", "home()", works=True, without="name of its user"),
    Case("talks to itself over a pair of sockets", "work", "pair()", works=True, plain=True),
    Case("runs a server and asks it", "work", "server()", works=True, plain=True, without="private loopback"),
)

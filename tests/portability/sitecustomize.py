"""Hides what another machine lacks: Python loads this at its start where PYTHONPATH names this folder.

TFLITE_MEMOPT_PRETEND is ``sys.platform`` of another system, of which the package sees no more than there is; what other
packages and the standard library import stays. TFLITE_MEMOPT_NO_NETWORK names a file: whatever asks for the network,
in any package, is refused and noted there.
"""

from __future__ import annotations

import builtins
import os
import sys
import types
from typing import Any

_PROCESSES = (
    "fork forkpty killpg getpgid setpgid setsid getuid geteuid getgid getegid nice getpriority setpriority wait3"
)
_PROCESSES += " wait4 uname getloadavg sysconf confstr posix_spawn register_at_fork WNOHANG"
_FILES = (
    "chown lchown chroot fchown fchdir mkfifo mknod pread pwrite preadv statvfs sendfile lockf O_NONBLOCK O_DIRECTORY"
)
_SIGNALS = "SIGKILL SIGALRM SIGHUP SIGUSR1 SIGUSR2 SIGCHLD SIGPIPE SIGQUIT SIGSTOP SIGCONT SIGXCPU SIGVTALRM setitimer"
_SIGNALS += " getitimer ITIMER_REAL alarm pause pthread_sigmask pthread_kill sigwait SIG_BLOCK SIG_SETMASK SIG_UNBLOCK"
_LINUX_ONLY = "sched_getaffinity sched_setaffinity memfd_create pidfd_open eventfd splice"
_NO_MODULES = {
    "win32": ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "posix", "syslog"),
    "darwin": (),
}
_NO_NAMES = {
    "win32": {"os": f"{_PROCESSES} {_FILES} {_LINUX_ONLY}", "signal": _SIGNALS},
    "darwin": {"os": _LINUX_ONLY},
}
_PACKAGE = "tflite_memopt"


def _without(module: types.ModuleType, names: str, **changed: Any) -> types.ModuleType:
    other = types.ModuleType(module.__name__)
    other.__dict__.update({name: value for name, value in vars(module).items() if name not in names.split()} | changed)
    return other


def install(platform: str) -> None:
    """From here on, modules of the package see no more than that system has."""
    original = builtins.__import__
    hidden = {name: _without(original(name), names) for name, names in _NO_NAMES[platform].items()}
    hidden["sys"] = _Sys(platform)

    def importing(name: str, names: Any = None, own_names: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        own = names is not None and str(names.get("__package__") or "").partition(".")[0] == _PACKAGE
        if own and level == 0:
            if name in _NO_MODULES[platform]:
                raise ModuleNotFoundError(f"{platform} has no {name}", name=name)
            if name in hidden:
                return hidden[name]
        return original(name, names, own_names, fromlist, level)

    builtins.__import__ = importing  # type: ignore[assignment]


class _Sys(types.ModuleType):
    """``sys`` itself but for its platform: its streams may be replaced."""

    def __init__(self, platform: str) -> None:
        super().__init__("sys")
        self.__dict__["platform"] = platform

    def __getattr__(self, name: str) -> Any:
        return getattr(sys, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(sys, name, value)


_NETWORK = (
    "socket.connect",
    "socket.bind",
    "socket.sendto",
    "socket.sendmsg",
    "socket.getaddrinfo",
    "socket.gethostby",
)


def _refuse_network(event: str, arguments: tuple[object, ...]) -> None:
    if event.startswith(_NETWORK):
        with open(os.environ["TFLITE_MEMOPT_NO_NETWORK"], "a", encoding="utf-8") as log:
            log.write(f"{event} {arguments}\n")
        raise PermissionError("the test allows no network")


if os.environ.get("TFLITE_MEMOPT_NO_NETWORK"):
    sys.addaudithook(_refuse_network)
if os.environ.get("TFLITE_MEMOPT_PRETEND"):
    install(os.environ["TFLITE_MEMOPT_PRETEND"])

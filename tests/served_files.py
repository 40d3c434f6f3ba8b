"""A server of files on loopback that gives parts of them, or misbehaves as it is told; it notes what it was asked."""

from __future__ import annotations

import hashlib
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

RANGE = re.compile(r"bytes=(\d+)-(\d+)")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Asked(NamedTuple):
    """One request: of what, from which byte on, how many came, and with which login."""

    path: str
    first: int
    nbytes: int
    login: str | None


class Served:
    """The folder that is served, how, and what was asked for so far."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.requests = folder, list[Asked]()
        self.has_ranges = True
        self.told: dict[str, str] = {}
        self.statuses: dict[str, int] = {}
        self.moved: dict[str, str] = {}
        self.login: str | None = None
        self.share, self.pause_s = 1.0, 0.0
        self.base = ""

    @property
    def nbytes(self) -> int:
        return sum(one.nbytes for one in self.requests)

    def forget(self) -> None:
        self.requests.clear()


@contextmanager
def serving(folder: Path) -> Iterator[Served]:
    served = Served(folder)
    server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"served": served}))
    served.base = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = False

    def handle_error(self, *_: Any) -> None:
        """Say nothing of those who hang up."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Else each answer would wait for the one before to be acknowledged.
    disable_nagle_algorithm = True
    served: Served

    def do_GET(self) -> None:
        # A proxy is asked for whole addresses.
        served, path = self.served, urlsplit(self.path).path
        login = self.headers.get("Authorization")
        if served.login is not None and login != served.login:
            self._answer(401, b"", login)
        elif path in served.moved:
            self._answer(302, b"moved", login, {"Location": served.moved[path]})
        elif path in served.statuses:
            self._answer(served.statuses[path], b"refused", login)
        elif not (served.folder / path.lstrip("/")).is_file():
            self._answer(404, b"not here", login)
        else:
            self._give(served.folder / path.lstrip("/"), login)

    def _give(self, file: Path, login: str | None) -> None:
        served, status = self.served, file.stat()
        headers = {
            "ETag": f'"{hashlib.md5(f"{status.st_mtime_ns} {status.st_size}".encode()).hexdigest()}"',
            "Last-Modified": formatdate(status.st_mtime, usegmt=True),
        }  # fmt: skip
        headers |= served.told
        part = RANGE.fullmatch(self.headers.get("Range", ""))
        if part is None or not served.has_ranges:
            self._answer(200, file.read_bytes(), login, headers)
            return
        first, last = int(part[1]), min(int(part[2]), status.st_size - 1)
        if first >= status.st_size:
            self._answer(416, b"", login, headers | {"Content-Range": f"bytes */{status.st_size}"})
            return
        with open(file, "rb") as there:
            there.seek(first)
            data = there.read(last + 1 - first)
        headers = {"Content-Range": f"bytes {first}-{last}/{status.st_size}"} | headers
        self._answer(206, data, login, headers, first)

    def _answer(
        self, status: int, data: bytes, login: str | None, headers: dict[str, str] | None = None, first: int = 0
    ) -> None:
        served = self.served
        sent = data[: int(len(data) * served.share)]
        number = len(served.requests)
        served.requests.append(Asked(self.path, first, 0, login))
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        try:
            step = 2**14 if served.pause_s else 2**20
            for at in range(0, len(sent), step):
                time.sleep(served.pause_s)
                # Noted before: who asks may go on as soon as all has come.
                now = served.requests[number]
                served.requests[number] = now._replace(nbytes=now.nbytes + len(sent[at : at + step]))
                self.wfile.write(sent[at : at + step])
        except (OSError, IndexError):
            self.close_connection = True
        if len(sent) < len(data):
            self.close_connection = True

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

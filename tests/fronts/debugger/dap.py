"""A small client of the Debug Adapter Protocol: a program that has stopped at a breakpoint in a child, and its pane.

https://microsoft.github.io/debug-adapter-protocol/specification
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TIMEOUT_S = 600
_BEGIN = """\
import debugpy
print(debugpy.listen(("127.0.0.1", 0))[1], flush=True)
debugpy.wait_for_client()
"""


class Debugger:
    """A session with one program, which has stopped in `frame`; `variables` are those that its pane lists by name."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        self._file, self._seq, self._events = self._socket.makefile("rwb"), 0, []

    def attach(self) -> None:
        """Begin the session, and wait until the program has stopped."""
        self.request("initialize", adapterID="test", pathFormat="path", supportsVariableType=True)
        attach = self._send("attach", {"justMyCode": False})
        self.event("initialized")
        self.request("configurationDone")
        self._reply(attach)
        self.wait()

    def wait(self) -> None:
        """Wait until the program has stopped, at a breakpoint."""
        self._thread = self.event("stopped")["threadId"]
        self.frame = self.request("stackTrace", threadId=self._thread, levels=1)["stackFrames"][0]["id"]

    def scope(self, name: str = "Locals") -> dict[str, Any]:
        """Return the variables of a scope by name."""
        (scope,) = (one for one in self.request("scopes", frameId=self.frame)["scopes"] if one["name"] == name)
        return self.children(scope)

    def children(self, variable: dict[str, Any]) -> dict[str, Any]:
        """Return what an expanded variable shows, by name."""
        return self.children_of([variable])[0]

    def children_of(self, variables: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return what each of these shows when it is expanded; all are asked at once, since an answer takes long."""
        sent = [self._send("variables", {"variablesReference": one["variablesReference"]}) for one in variables]
        return [{one["name"]: one for one in self._reply(seq)["variables"]} for seq in sent]

    def evaluate(self, expression: str, context: str) -> str:
        """Return what the debugger says of an expression."""
        result = self.request("evaluate", expression=expression, frameId=self.frame, context=context)["result"]
        return str(result)

    def go_on(self) -> None:
        """Have the program continue."""
        self.request("continue", threadId=self._thread)

    def request(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Return the body of the answer."""
        return self._reply(self._send(command, arguments))

    def event(self, name: str) -> dict[str, Any]:
        """Return the body of the next event of this name."""
        while not any(one["event"] == name for one in self._events):
            self._note(self._receive())
        (found,) = [one for one in self._events if one["event"] == name][:1]
        self._events.remove(found)
        return dict(found.get("body", {}))

    def close(self) -> None:
        """End the session, not the program."""
        self._file.close()
        self._socket.close()

    def _send(self, command: str, arguments: dict[str, Any]) -> int:
        self._seq += 1
        message = {"seq": self._seq, "type": "request", "command": command, "arguments": arguments}
        content = json.dumps(message).encode()
        self._file.write(b"Content-Length: %d\r\n\r\n%b" % (len(content), content))
        self._file.flush()
        return self._seq

    def _reply(self, seq: int) -> dict[str, Any]:
        while True:
            message = self._receive()
            if message.get("request_seq") == seq:
                assert message["success"], message
                return dict(message.get("body", {}))
            self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        assert message.get("event") not in ("terminated", "exited"), "the program has ended"
        assert message.get("success", True), message
        if message["type"] == "event":
            self._events.append(message)

    def _receive(self) -> dict[str, Any]:
        length = 0
        while (line := self._file.readline()) != b"\r\n":
            assert line, "the debugger has gone, and with it the program"
            if line.startswith(b"Content-Length:"):
                length = int(line.partition(b":")[2])
        return dict(json.loads(self._file.read(length)))


@contextmanager
def stopped(code: str, tmp_path: Path, **environment: str) -> Iterator[Debugger]:
    """Run a program that calls `breakpoint()`, and yield the debugger once it has; it must end well after the block."""
    script = tmp_path / "program.py"
    script.write_text(_BEGIN + code, encoding="utf-8")
    log = tmp_path / "program.txt"
    tests = Path(__file__).parents[2]
    path = os.pathsep.join([*map(str, (tests, Path(__file__).parent)), *filter(None, sys.path)])
    settings = os.environ | {"PYTHONPATH": path, "PYDEVD_DISABLE_FILE_VALIDATION": "1"} | environment
    settings |= {"DEBUGPY_PROCESS_SPAWN_TIMEOUT": str(TIMEOUT_S)}
    with log.open("w") as error:
        program = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", script],
            cwd=tmp_path, env=settings, stdout=subprocess.PIPE, stderr=error, text=True,
        )  # fmt: skip
    debugger = None
    try:
        assert program.stdout is not None
        # Debugpy's adapter holds the pipe open after a program that could not begin.
        while not select.select([program.stdout], [], [], 0.1)[0]:
            assert program.poll() is None, "the program has ended"
        port = program.stdout.readline()
        assert port, "the program has ended"
        debugger = Debugger(int(port))
        debugger.attach()
        yield debugger
        debugger.go_on()
        assert program.wait(TIMEOUT_S) == 0, f"it ended with {program.returncode}"
    except AssertionError as error:
        raise AssertionError(f"{error}\n{log.read_text()[-4000:]}") from error
    finally:
        if debugger is not None:
            debugger.close()
        program.kill()
        program.wait()

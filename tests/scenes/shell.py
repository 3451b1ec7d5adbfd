"""Runs `tallystick` in this process as a shell would: words, environment, streams, exit code."""

from __future__ import annotations

import io
import json
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main

from cli import main as cli
from cli.remote import Remote
from tallystick_client import NEVER, Client

_command, _group = cache(typer.main.get_command), cache(typer.main.get_group)
"""Putting the tree of all commands together takes longer than most commands, and that of a group
twice as long as the rest of one: once is enough.
"""


@dataclass(frozen=True)
class Ran:
    """What came of one command."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Standard output, which must be exactly one JSON document."""
        assert self.out.endswith("\n"), (self.out, self.err)
        assert self.out.count("\n") == 1, self.out
        return json.loads(self.out)


def tallystick(*arguments: object, **environment: object) -> Ran:
    """Run one command; `environment` stands in for every TALLYSTICK_ variable there is."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patched, redirect_stdout(out), redirect_stderr(err):
        for name in [name for name in os.environ if name.startswith("TALLYSTICK_")]:
            patched.delenv(name)
        for name, value in environment.items():
            patched.setenv(f"TALLYSTICK_{name}", str(value))
        patched.setattr(typer.main, "get_command", _command)
        patched.setattr(typer.main, "get_group", _group)
        patched.setattr(sys, "argv", ["tallystick", *map(str, arguments)])
        code = cli.main()
    ran = Ran(code, out.getvalue(), err.getvalue())
    if code and "--json" in arguments:
        assert ran.document is not None, "a program reads the failure, too"
    return ran


class Machine:
    """One installation: a data folder and a database."""

    def __init__(self, folder: Path, database: str) -> None:
        self.folder, self.database = folder, database

    def run(self, *arguments: object, **more: object) -> Ran:
        return tallystick(
            *arguments, **{"DATA_DIR": self.folder, "DATABASE_URL": self.database, **more}
        )


def tallystick_at(http: Any, key: str | None, *arguments: object) -> Ran:
    """Run one command against a server in this process, which is asked without a socket."""
    client = Client("", key, retry=NEVER, http=http)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Remote, "ask", lambda _self, call: call(client))
        return tallystick(*arguments, API_KEY=key or "", URL="http://127.0.0.1:1")

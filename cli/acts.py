"""Acts that take a second person: a file with the request, that governors sign and the maker sends.

    --to-sign FILE   the request as it would be sent, and nothing is sent
    governor sign    the request is shown, and a signature is added to the file
    --signed FILE    the same request again, sent with the signatures

The file is bound to its Idempotency-Key: sent twice, it takes effect once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import typer

from cli.signing import differences, read_key
from cli.terminal import InputUnusable, note

if TYPE_CHECKING:
    import httpx

    from cli.remote import Remote

FORM = "tallystick-act-v1"
GOOD_FOR_US = 3 * 86_400 * 1_000_000
_FIELDS = ("network", "governors", "request", "method", "path", "body", "not_after_us")
_SIGNATURES = "signatures"
Hook = Callable[["httpx.Request"], None]


def hooked(url: str, hook: Hook) -> httpx.Client:
    """A connection whose requests pass the hook first."""
    import httpx

    from tallystick_client.calls import TIMEOUT_SECONDS, authorities

    return httpx.Client(
        base_url=url, timeout=TIMEOUT_SECONDS, verify=authorities(), event_hooks={"request": [hook]}
    )


def to_sign(remote: Remote, file: Path) -> Hook:
    """Write the recording request into the file, and end the command."""

    def write(request: httpx.Request) -> None:
        if request.method != "POST":
            return
        from tallystick_client import Client

        with Client(remote.url) as client:
            governors = client.list_governors()
        until_us = time.time_ns() // 1_000 + GOOD_FOR_US
        act = act_of(governors, remote.key, *_asked(remote, request), until_us)
        write_act(file, act)
        remote.tell(act, [f"written to {file}", f"`tallystick governor sign {file}`, by two"])
        raise typer.Exit

    return write


def signed(remote: Remote, file: Path | None) -> Hook:
    """Send the request with the signatures of the file. Raises InputUnusable for another one."""
    assert file is not None
    act = read_act(file)

    def send(request: httpx.Request) -> None:
        if request.method != "POST":
            return
        if _asked(remote, request) != (act["method"], act["path"], act["body"]):
            raise InputUnusable(f"{file} is of another request; give the same arguments as then")
        request.headers["Governor-Signatures"] = json.dumps(header_of(act))

    return send


def act_of(
    governors: Any, request: str, method: str, path: str, body: Any, not_after_us: int
) -> dict[str, Any]:
    """What is to be signed; `governors` as the server tells them."""
    values = (governors["network"], governors["version"], request, method, path, body, not_after_us)
    return {"format": FORM, **dict(zip(_FIELDS, values, strict=True)), _SIGNATURES: []}


def header_of(act: dict[str, Any]) -> dict[str, Any]:
    """What a request carries of a signed file."""
    return {name: act[name] for name in ("governors", "not_after_us", _SIGNATURES)}


def add_signature(file: Path, key: Path) -> dict[str, Any]:
    """Show the act and add the signature of this key to the file; the act. Raises InputUnusable."""
    from domain.authority.acts import content_of, signed_text
    from domain.authority.vote import digest, governor_id

    act, personal = read_act(file), read_key(key)
    content = content_of(act["method"], act["path"], act["body"], act["not_after_us"])
    text = signed_text(act["network"], act["request"], digest(content), act["governors"])
    for line in (*differences(None, json.loads(content)), *text.split("\n")):
        note(line)
    mine = governor_id(personal.public)
    others = [one for one in act[_SIGNATURES] if one["governor_id"] != mine]
    act[_SIGNATURES] = [*others, {"governor_id": mine, "signature": personal.sign(text)}]
    write_act(file, act)
    return act


def read_act(file: Path) -> dict[str, Any]:
    """Raises InputUnusable."""
    try:
        act = json.loads(file.read_text(encoding="utf-8"))
        if act["format"] != FORM or not {*_FIELDS, _SIGNATURES} <= act.keys():
            raise ValueError("another format")
    except (OSError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputUnusable(f"{file} is no act to sign: {error}") from None
    return dict(act)


def write_act(file: Path, act: dict[str, Any]) -> None:
    """Raises InputUnusable."""
    try:
        file.write_text(json.dumps(act, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputUnusable(f"{file}: {error.strerror}") from None


def _asked(remote: Remote, request: httpx.Request) -> tuple[str, str, Any]:
    """Method, address as the server sees it, and body."""
    path = request.url.raw_path.decode("ascii").removeprefix(urlsplit(remote.url).path)
    return request.method, path, json.loads(request.content)

"""A server as the thin clients see it: one request, one answer, problems as exit codes.

    exit 1: the server refuses      exit 2: the request breaks a rule of form (400, 422 `invalid`)

Every recording call carries an Idempotency-Key, so a lost answer is asked for again and nothing
happens twice. The API key comes from the environment where possible and is never printed.

A command that only reads is marked `@reads`, one that records something `@records`, one that shows
a list `@lists`: it is given the `Remote` in front of its own arguments, and the options that name
the server and choose the page of a list stand behind them.
"""

from __future__ import annotations

import inspect
import ipaddress
import os
import re
import secrets
import time
from collections.abc import Callable, Iterable
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, Literal, ParamSpec, TypeVar
from urllib.parse import urlsplit

import typer

from cli.terminal import (
    EXIT_NO,
    EXIT_USAGE,
    AnswerIsNo,
    AsJson,
    InputUnusable,
    note,
    tell,
    with_local_times,
)

if TYPE_CHECKING:
    from tallystick_client import Client
    from tallystick_client.forms import Money, Problem

Told = TypeVar("Told")
Own = ParamSpec("Own")
TRIES_MAX = 4
WAIT_SECONDS_MAX = 5
START_SECONDS_MAX = 30
PAGE = 100
LIMIT = 50
ALL_MAX = 100_000

Url = Annotated[
    str | None, typer.Option("--url", envvar="TALLYSTICK_URL", help="Address of the server.")
]
ApiKey = Annotated[
    str | None,
    typer.Option(
        "--api-key", envvar="TALLYSTICK_API_KEY", help="API key; better set in the environment."
    ),
]
IdempotencyKey = Annotated[
    str | None,
    typer.Option(
        "--idempotency-key", help="Repeats an earlier call with its key; default: random."
    ),
]
ToSign = Annotated[
    Path | None,
    typer.Option(
        "--to-sign",
        metavar="FILE",
        help="Send nothing: write what two governors have to sign with `governor sign`.",
    ),
]
Signed = Annotated[
    Path | None,
    typer.Option(
        "--signed", metavar="FILE", help="The file of `--to-sign`, once governors signed it."
    ),
]
Limit = Annotated[int, typer.Option("--limit", min=1, max=ALL_MAX, help="At most so many.")]
Everything = Annotated[bool, typer.Option("--all", help="All of them, not only the first ones.")]
Order = Annotated[
    Literal["asc", "desc"],
    typer.Option("--order", help="desc: the newest first; asc: the oldest first."),
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="TIME",
        help="Only what came after: 2h, 3d, 2026-11-01 or 2026-11-01T08:00:00Z.",
    ),
]
AS_IT_IS: dict[str, Any] = {"limit": Limit, "everything": Everything}
"""The options of a list that has one order of its own, such as the price."""
BY_NUMBER: dict[str, Any] = {**AS_IT_IS, "order": Order}
"""Of a list by a number that is no position of the log, such as an epoch."""
IN_ORDER: dict[str, Any] = {**BY_NUMBER, "since": Since}
"""Of a list in the order of the log."""
_DEFAULTS = {"limit": LIMIT, "everything": False, "order": "desc", "as_json": False}


class Remote:
    """One server, whose key we hold, and how its answer is shown. `key` is the Idempotency-Key of
    the one recording call.
    """

    def __init__(
        self,
        url: str | None,
        api_key: str | None,
        *,
        key: str | None = None,
        as_json: bool = False,
        to_sign: Path | None = None,
        signed: Path | None = None,
        **page: Any,
    ) -> None:
        """`to_sign`: write the recording call into this file instead of sending it; `signed`: send
        it with the signatures of this one. `page`: the options of a list. Raises InputUnusable.
        """
        from tallystick_client import NEVER, Client

        self._limit = ALL_MAX if page.get("everything") else page.get("limit", LIMIT)
        self._page = {name: page[name] for name in ("order",) if name in page}
        if page.get("since") is not None:
            self._page["since"] = moment_of(page["since"])
        self.url = (url or _of_this_machine()).rstrip("/")
        _check_url(self.url, has_secret=api_key is not None)
        self.key = key or f"cli-{secrets.token_hex(16)}"
        self.has_key = api_key is not None
        self.as_json = as_json
        checked = None if api_key is None else _printable_key(api_key)
        # `ask` repeats a call itself: it also waits for a server of this machine that starts.
        self._connect = partial(Client, self.url, checked, retry=NEVER, allow_http=True)
        if to_sign is not None or signed is not None:
            from cli import acts

            if signed is not None:
                self.key = acts.read_act(signed)["request"]
            hook = acts.to_sign(self, to_sign) if to_sign else acts.signed(self, signed)
            http = acts.hooked(self.url, hook)
            self._connect = partial(Client, self.url, checked, retry=NEVER, http=http)

    def ask(self, call: Callable[[Client], Told]) -> Told:
        """The answer. What may be asked again is, under the same key. Raises AnswerIsNo."""
        import httpx

        from tallystick_client import ApiProblem

        for attempt in range(1, TRIES_MAX + 1):
            try:
                return self._reach(call)
            except httpx.TransportError as error:
                if attempt == TRIES_MAX or isinstance(error, httpx.ConnectError):
                    raise AnswerIsNo(f"{self.url}: {error}\n{_UNREACHED}") from None
                time.sleep(1)
            except ApiProblem as problem:
                if attempt == TRIES_MAX or not problem.is_retryable:
                    again = self.key if problem.is_retryable else None
                    raise _no(problem.document, again) from None
                time.sleep(min(problem.retry_after_seconds or 1, WAIT_SECONDS_MAX))
        raise AssertionError("the last attempt answers or raises")

    def list(
        self,
        call: Callable[[Client, dict[str, Any]], Any],
        limit: int | None = None,
        *,
        rows: str = "data",
    ) -> dict[str, Any]:
        """The first rows of a list, page by page: `call(client, page)`, where `page` is what the
        route takes beside its filters. With a `limit` of ours the list is a means and read upwards;
        without, the caller's options hold, and a note says when there are more.
        """
        wanted, asked = (self._limit, self._page) if limit is None else (limit, {})
        found: list[dict[str, Any]] = []
        first: dict[str, Any] = {}
        cursor: str | None = None
        while True:
            place = {"limit": min(wanted - len(found), PAGE), "cursor": cursor, **asked}
            page = self.ask(partial(_page, call, place))
            first = first or dict(page)
            found += page[rows]
            cursor = page.get("next_cursor")
            if cursor is None or len(found) >= wanted:
                break
        first.pop("next_cursor", None)
        if cursor is not None and limit is None and not self.as_json:
            note(f"{len(found):,} are shown, and there are more: --all, or --limit with a number")
        return {**first, rows: found, "has_more": cursor is not None, "position": page["position"]}

    def own(self, account_id: str | None) -> str:
        """The account that was named, or that of the key. Raises InputUnusable for a key that sees
        several.
        """
        own = account_id or self.own_account_or_none()
        if own is None:
            raise InputUnusable("this key sees more than one account: give --account or ACCOUNT")
        return own

    def own_account_or_none(self) -> str | None:
        """The account of the key; None for a key that sees several."""
        found = self.list(lambda c, page: c.list_accounts(**page), 2)["data"]
        return str(found[0]["account_id"]) if len(found) == 1 else None

    def tell(self, document: Any, lines: Iterable[str]) -> None:
        """The result: as one JSON document, or as lines for people."""
        tell(document, lines, as_json=self.as_json)

    def _reach(self, call: Callable[[Client], Told]) -> Told:
        """A server of this machine may still be starting, so that is waited for."""
        import httpx

        starts_for = START_SECONDS_MAX if _is_loopback(urlsplit(self.url).hostname or "") else 0
        ends = time.monotonic() + starts_for
        while True:
            try:
                with self._connect() as client:
                    return call(client)
            except httpx.ConnectError:
                if time.monotonic() >= ends:
                    raise
                time.sleep(0.2)


def reads(command: Callable[Concatenate[Remote, Own], None]) -> Callable[..., None]:
    """A command that asks a server and changes nothing there."""
    return _of_a_server(command, url=Url, api_key=ApiKey, as_json=AsJson)


def records(command: Callable[Concatenate[Remote, Own], None]) -> Callable[..., None]:
    """A command that has something recorded, once, however often the same key is used."""
    return _of_a_server(command, url=Url, api_key=ApiKey, key=IdempotencyKey, as_json=AsJson)


def lists(
    options: dict[str, Any],
) -> Callable[[Callable[Concatenate[Remote, Own], None]], Callable[..., None]]:
    """A command that shows a list, with the options that its route has."""

    def listing(command: Callable[Concatenate[Remote, Own], None]) -> Callable[..., None]:
        return _of_a_server(command, **options, url=Url, api_key=ApiKey, as_json=AsJson)

    return listing


def acts(command: Callable[Concatenate[Remote, Own], None]) -> Callable[..., None]:
    """A command that records an act which above a limit takes a second person."""
    options: dict[str, Any] = {"key": IdempotencyKey, "to_sign": ToSign, "signed": Signed}
    return _of_a_server(command, url=Url, api_key=ApiKey, **options, as_json=AsJson)


def _of_a_server(command: Callable[..., None], **options: Any) -> Callable[..., None]:
    """The command with these options behind its own: what `Remote` takes, under its names.

    `--help` is made of the signature, so the command gets one that has them.
    """
    signature = inspect.signature(command, eval_str=True)
    parameters = [
        one.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for one in [*signature.parameters.values()][1:]
    ]
    for name, option in options.items():
        default = _DEFAULTS.get(name)
        parameters.append(
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=option
            )
        )

    @wraps(command)
    def of_a_server(**given: Any) -> None:
        remote = Remote(**{name: given.pop(name) for name in options})
        command(remote, **given)

    vars(of_a_server)["__signature__"] = signature.replace(parameters=parameters)
    return of_a_server


def _page(
    call: Callable[[Client, dict[str, Any]], Any], place: dict[str, Any], client: Client
) -> Any:
    return call(client, place)


_AGO = re.compile(r"([0-9]{1,6})([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def moment_of(text: str) -> str:
    """A moment as people write it, for the server: 2h ago, a day or a time of this machine's zone,
    or a time with its offset. Raises InputUnusable.
    """
    from datetime import UTC, datetime, timedelta

    ago = _AGO.fullmatch(text)
    try:
        if ago is not None:
            at = datetime.now(UTC) - timedelta(seconds=int(ago[1]) * _SECONDS[ago[2]])
        else:
            at = datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InputUnusable(
            f"{text!r} is no moment: give 2h, 3d, 2026-11-01 or 2026-11-01T08:00:00Z"
        ) from None
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def credits_of(text: str) -> Money:
    """`2.78` as an amount of CREDIT. Raises InputUnusable; no float is involved."""
    form = re.fullmatch(r"([0-9]{1,12})(?:\.([0-9]{1,6}))?", text)
    if form is None:
        raise InputUnusable(f"{text!r} is no amount: credits like 25 or 2.78, six decimals at most")
    units = int(form[1]) * 1_000_000 + int((form[2] or "").ljust(6, "0"))
    return {"asset": "CREDIT", "units": str(units)}


def ppm_of(text: str) -> int:
    """`0.37` as parts per million. Raises InputUnusable."""
    ppm = part_of(text)
    if not ppm:
        raise InputUnusable(f"{text!r} is no share: above 0 and at most 1, like 0.37")
    return ppm


def part_of(text: str) -> int:
    """A part of one that may be nothing, in parts per million. Raises InputUnusable."""
    form = re.fullmatch(r"([01])(?:\.([0-9]{1,6}))?", text)
    ppm = -1 if form is None else int(form[1]) * 1_000_000 + int((form[2] or "").ljust(6, "0"))
    if not 0 <= ppm <= 1_000_000:
        raise InputUnusable(f"{text!r} is no share: from 0 to 1, like 0.37")
    return ppm


def _of_this_machine() -> str:
    """Where `tallystick serve` listens with the same settings."""
    from cli.settings import in_force

    settings = in_force()
    scheme = "http" if settings.ssl_certfile is None else "https"
    return f"{scheme}://{settings.host}:{settings.port}"


def _check_url(url: str, *, has_secret: bool) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputUnusable(f"{url!r} is not an address: give one like https://tallystick.example")
    if parts.username is not None or parts.password is not None:
        raise InputUnusable("no user and no password in the address: set TALLYSTICK_API_KEY")
    allowed = os.environ.get("TALLYSTICK_ALLOW_HTTP") == "1"
    if parts.scheme == "http" and has_secret and not (allowed or _is_loopback(parts.hostname)):
        raise InputUnusable(
            f"{url} would send the API key in the clear: use https, or set TALLYSTICK_ALLOW_HTTP=1"
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _printable_key(api_key: str) -> str:
    if re.fullmatch(r"[!-~]+", api_key) is None:
        raise InputUnusable("the API key has characters that no key has: copy it again")
    return api_key


def _no(problem: Problem, again: str | None = None) -> AnswerIsNo:
    """What a problem says to people. `again`: it is of a call that may be repeated under this key,
    was not answered, and may be done all the same.
    """
    detail = with_local_times(str(problem.get("detail") or problem.get("title")))
    errors = problem.get("errors") or ()
    word = "refused" if again is None else "not answered"
    lines = [f"{word} ({problem.get('code')}): {detail}"]
    broken = [f"{error.get('pointer')}: {error.get('detail')}" for error in errors]
    lines += [f"  {one}" for one in broken if one != detail]
    advice = _ADVICE.get(str(problem.get("code")))
    if advice is not None:
        lines.append(advice)
    if again is not None:
        lines.append(
            f"give the command again later; one that records, with --idempotency-key {again}"
        )
    wrong_form = problem.get("status") == 400 or problem.get("code") == "invalid"
    return AnswerIsNo("\n".join(lines), problem, code=EXIT_USAGE if wrong_form else EXIT_NO)


_UNREACHED = "check that `tallystick serve` runs there, and TALLYSTICK_URL"
_ADVICE = {
    "unauthenticated": "set TALLYSTICK_API_KEY to your API key",
    "credential_invalid": "set TALLYSTICK_API_KEY to a key that is not revoked",
    "scope_missing": "use a key of the party this is for",
    "http_error": "check TALLYSTICK_URL",
}

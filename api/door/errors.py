"""The one table from a refusal to its HTTP answer, and the one form of every error: RFC 9457.

Switch on `code`, never on text. A 5xx shows no internals; a 4xx names the field and the rule and
has changed nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import psycopg
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from api.process.secret_files import KeyNotHere
from api.process.waiting import ProjectionBehind
from api.refusals.words import SENTENCES
from domain.reasons import reason_of
from domain.refusal import Reason, Refused
from ledger.log.handle import DATABASE_AWAY, InProgress, LogBusy, OutcomeUnknown, StreamMoved
from ledger.log.lane_store import LanesStopped

MEDIA_TYPE = "application/problem+json"

STATUS: dict[Reason, int] = {reason: found.status for reason, found in SENTENCES.items()}
"""The status of every reason; it stands beside the reason's sentence, in the file of its room."""


DOOR: dict[str, tuple[int, str]] = {
    "malformed_json": (400, "The body is not JSON: UTF-8, no key twice, at most 16 levels deep."),
    "malformed_header": (400, "A header of the request cannot be read."),
    "cursor_invalid": (400, "The cursor is not one of this list, or was given to another caller."),
    "parameter_unknown": (400, "The operation has no query parameter of this name."),
    "as_of_unsupported": (400, "The operation cannot answer as of this moment of the past."),
    "idempotency_key_missing": (400, "A call that records something needs an Idempotency-Key."),
    "idempotency_key_invalid": (400, "An Idempotency-Key has 1 to 255 visible ASCII characters."),
    "unauthenticated": (401, "The call needs a key: Authorization: Bearer."),
    "credential_invalid": (401, "The key is malformed, unknown, expired or revoked."),
    "audience_wrong": (403, "The call is for other callers: API keys or nodes."),
    "scope_missing": (403, "The key lacks every scope that would allow this call."),
    "not_found": (404, "There is nothing at this address, or nothing that you may see."),
    "method_not_allowed": (405, "The address does not know this method."),
    "idempotency_in_progress": (409, "The same request is being handled. Ask again shortly."),
    "not_covered": (409, "No signed checkpoint covers this event yet. Ask again shortly."),
    "if_match_missing": (428, "The call needs an If-Match: the ETag of what you have read."),
    "too_large": (413, "The request is larger than it may be."),
    "unsupported_media_type": (415, "The body must be application/json, not compressed."),
    "invalid": (422, "A field breaks its rule; `errors` names field and rule."),
    "private_key_sent": (
        422,
        "The request holds a private key, as key files of service accounts do. Nothing was"
        " recorded. No operation needs one: take the key file out, and replace the key.",
    ),
    "rehearsal_too_large": (422, "The past is too long for here: `tallystick policy dry-run`."),
    "challenge_unknown": (422, "No such challenge: never made here, used or expired."),
    "signature_invalid": (422, "The signature is not one of this key over the text it is for."),
    "payment_method_unavailable": (422, "This installation takes no money in this way."),
    "processor_refused": (422, "The payment processor refuses; `detail` is its word for why."),
    "processor_away": (503, "The payment processor does not answer. Ask again with the same key."),
    "sign_up_closed": (403, "This market is by invitation: ask its operator for a code."),
    "sign_up_full": (429, "As many accounts were opened as may be in a day. Try again tomorrow."),
    "event_forged": (400, "The signature of the event is missing, wrong or too old."),
    "rate_limited": (429, "Too many calls. Wait as long as Retry-After says."),
    "too_many_at_once": (
        429,
        "Too many requests of this account, or of this address where no key is known, wait for"
        " their turn. Nothing was done: send it again after Retry-After, and fewer at once.",
    ),
    "internal_error": (500, "The server failed. Nothing without a 2xx is promised."),
    "http_error": (500, "The server could not answer this request."),
    "busy": (503, "The server is busy. Nothing was recorded; try again."),
    "timed_out": (
        503,
        "The answer took too long. What was asked for may still happen: ask again, with the same"
        " Idempotency-Key.",
    ),
    "read_only": (
        503,
        "This server only reads: nothing was recorded. Send the request to the market's main"
        " address.",
    ),
    "projection_behind": (503, "The view has not reached the position asked for. Ask again."),
    # Usage reports (api/ingest/door.py).
    "malformed": (400, "The envelope or the identity of a report cannot be read."),
    "bad_signature": (401, "The node's key is unknown or did not sign these bytes."),
    "revoked": (403, "The key of this node was revoked."),
    "quarantined": (403, "This node is in quarantine."),
    "gap": (409, "Reports before this one are missing: resend from the next one on."),
    "fork": (409, "The report does not follow the last stored one."),
    "equivocation": (422, "Another report with this number was signed before."),
    "one_request_at_a_time": (429, "Another request of this node or account is in progress."),
    "too_many_reports": (429, "This node sends more than it may."),
    "internal": (500, "The report could not be stored."),
    "unavailable": (503, "The usage log cannot be reached."),
}
"""Codes that no rule of the marketplace gives, with their status and what they mean."""

RETRYABLE = frozenset(
    {
        "idempotency_in_progress",
        "not_covered",
        "rate_limited",
        "too_many_at_once",
        "busy",
        "timed_out",
        "projection_behind",
        "internal_error",
        "gap",
        "fork",
        "too_large",
        "one_request_at_a_time",
        "too_many_reports",
        "unavailable",
        "processor_away",
    }
)
RETRY_AFTER_SECONDS = 1
ERRORS_MAX = 100
"""Broken fields that one answer names."""


def status_of(code: str) -> int:
    """The status of any code there is."""
    known = DOOR.get(code)
    return STATUS[reason_of(code)] if known is None else known[0]


def title_of(code: str) -> str:
    """A short name a person can read; equal for equal codes."""
    return code.replace("_", " ").capitalize()


def meaning_of(code: str) -> str:
    """What it means, without the facts of one case: for the page behind a problem's `type`."""
    return DOOR[code][1] if code in DOOR else SENTENCES[reason_of(code)].said({})


@dataclass(eq=False)
class Problem(Exception):
    """An answer that is a problem document. Not frozen: raising writes the traceback into it."""

    status: int
    code: str
    detail: str = ""
    errors: tuple[Mapping[str, str], ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def document(self, instance: str, request_id: str) -> dict[str, Any]:
        """The body of the answer; absent means absent."""
        body: dict[str, Any] = {
            "type": f"/problems/{self.code}",
            "title": title_of(self.code),
            "status": self.status,
            "code": self.code,
            "retryable": self.code in RETRYABLE,
            "instance": instance,
            "request_id": request_id,
        }
        if self.detail:
            body["detail"] = self.detail
        if self.facts:
            body["facts"] = dict(self.facts)
        if self.errors:
            body["errors"] = [dict(error) for error in self.errors]
        return body


def problem(code: str, detail: str = "", **headers: str) -> Problem:
    """A problem by its code; underscores in header names become hyphens."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Problem(status_of(code), code, detail, headers=named)


def too_many_at_once(seconds: int = RETRY_AFTER_SECONDS) -> Problem:
    """The line of the caller is full, or its turn or place did not come in time."""
    return problem("too_many_at_once", Retry_After=str(seconds))


def etag(version: object) -> str:
    """The ETag of something whose stream has so many facts."""
    return f'"v{version}"'


def of_refusal(refused: Refused) -> Problem:
    """The problem a refusal is answered with: its sentence, and its facts as they are."""
    facts = {name: str(value) for name, value in refused.facts.items() if value is not None}
    headers = {"ETag": etag(refused.facts["found"])} if STATUS[refused.reason] == 412 else {}
    detail = SENTENCES[refused.reason].said(facts)
    return Problem(
        STATUS[refused.reason], refused.reason.value, detail, facts=facts, headers=headers
    )


def of_failure(error: Exception) -> Problem | None:
    """The problem of an expected failure of the machinery behind the door; None for a bug."""
    match error:
        case Refused():
            return of_refusal(error)
        case InProgress():
            return problem("idempotency_in_progress", Retry_After=str(RETRY_AFTER_SECONDS))
        case ClientDisconnect():
            return problem("malformed_json", "the body ended early")  # nobody is there to read it
        case ProjectionBehind():
            return problem("projection_behind", str(error), Retry_After=str(RETRY_AFTER_SECONDS))
        case KeyNotHere():
            return problem("read_only", "this server has no copy of the log's key")
        case _ if isinstance(_cause_of(error), psycopg.errors.ReadOnlySqlTransaction):
            return problem(
                "read_only", "this server only reads; ask the market's main address to record it"
            )
        case StreamMoved() | LogBusy() | OutcomeUnknown() | LanesStopped():
            return problem("busy", Retry_After=str(RETRY_AFTER_SECONDS))
        case _ if isinstance(error, (psycopg.OperationalError, *DATABASE_AWAY)):
            return problem("busy", Retry_After=str(RETRY_AFTER_SECONDS))
        case _:
            return None


def _cause_of(error: Exception) -> BaseException:
    """What the database said; the library wraps it."""
    return error if error.__cause__ is None else error.__cause__


def of_validation(error: RequestValidationError) -> Problem:
    """One entry per broken field, each with a JSON pointer and the rule."""
    found = []
    malformed = False
    for broken in error.errors()[:ERRORS_MAX]:
        malformed = malformed or broken["type"] in ("json_invalid", "bytes_invalid")
        where = [_escaped(part) for part in broken["loc"] if part != "body"]
        rule = _rule(broken)
        found.append({"pointer": "#/" + "/".join(where), "detail": rule})
    if malformed:
        return Problem(400, "malformed_json", "the body is not JSON", errors=tuple(found))
    first = f"{found[0]['pointer']}: {found[0]['detail']}" if found else "a field breaks its rule"
    return Problem(422, "invalid", first, errors=tuple(found))


_ID = re.compile(r"\^([a-z]+)_\[0-9A-Za-z\]\{1,64\}\$")


def _rule(broken: Mapping[str, Any]) -> str:
    """The broken rule in words; of a pattern that is no id of ours, with the pattern."""
    if broken["type"] != "string_pattern_mismatch":
        return str(broken["msg"]).removeprefix("Value error, ")
    pattern = str(broken["ctx"]["pattern"])
    of_id = _ID.fullmatch(pattern)
    if of_id is not None:
        return f"an id begins with {of_id[1]}_ and goes on with letters and digits: copy it again"
    return f"does not have the form that is needed here, {pattern}"


def _escaped(part: object) -> str:
    """One step of a JSON pointer (RFC 6901)."""
    return str(part).replace("~", "~0").replace("/", "~1")


def render(found: Problem, path: str, request_id: str) -> JSONResponse:
    """The HTTP answer of a problem."""
    return JSONResponse(
        found.document(path, request_id),
        status_code=found.status,
        media_type=MEDIA_TYPE,
        headers=dict(found.headers),
    )


def answer(request: Request, found: Problem) -> JSONResponse:
    return render(found, request.url.path, getattr(request.state, "request_id", ""))


def install(app: FastAPI) -> None:
    """Replace the framework's own error forms, or two of them would leak out."""

    @app.exception_handler(Problem)
    async def _problem(request: Request, error: Problem) -> JSONResponse:
        return answer(request, error)

    @app.exception_handler(RequestValidationError)
    async def _invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        return answer(request, of_validation(error))

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> JSONResponse:
        codes = {404: "not_found", 405: "method_not_allowed", 413: "too_large"}
        code = codes.get(error.status_code, "http_error")
        headers = error.headers or {}
        return answer(request, Problem(error.status_code, code, headers=headers))

    @app.exception_handler(Exception)
    async def _broken(request: Request, error: Exception) -> JSONResponse:
        return answer(request, of_failure(error) or problem("internal_error"))

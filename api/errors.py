"""The one table from a refusal to its HTTP answer, and the one form of every error: RFC 9457.

Switch on `code`, never on text. A 5xx shows no internals; a 4xx names the field and the rule and
has changed nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from domain.refusal import Reason, Refused

MEDIA_TYPE = "application/problem+json"

_UNPROCESSABLE = 422
_NOT_FOUND = (
    Reason.ACCOUNT_UNKNOWN, Reason.MEMBER_UNKNOWN, Reason.API_KEY_UNKNOWN, Reason.WALLET_UNKNOWN,
    Reason.PROVIDER_UNKNOWN, Reason.REGION_UNKNOWN, Reason.NODE_UNKNOWN, Reason.DEVICE_UNKNOWN,
    Reason.OFFER_UNKNOWN, Reason.JOB_UNKNOWN, Reason.LEASE_UNKNOWN, Reason.EPOCH_UNKNOWN,
    Reason.TARIFF_UNKNOWN, Reason.JOIN_CODE_UNKNOWN,
)  # fmt: skip
_CONFLICT = (
    Reason.ACCOUNT_EXISTS, Reason.MEMBER_EXISTS, Reason.LAST_OWNER, Reason.API_KEY_REVOKED,
    Reason.OPERATOR_EXISTS, Reason.WALLET_TAKEN, Reason.PROVIDER_EXISTS, Reason.REGION_EXISTS,
    Reason.JOIN_CODE_USED, Reason.JOIN_CODE_EXPIRED, Reason.NODE_EXISTS, Reason.NODE_STATE,
    Reason.NODE_KEY_MISMATCH, Reason.NODE_SPECS_MISSING, Reason.NODE_NOT_JOINABLE,
    Reason.NODE_BUSY, Reason.DEVICE_ELSEWHERE, Reason.DEVICE_TAKEN, Reason.DEVICE_INTERVAL,
    Reason.OFFER_EXISTS, Reason.OFFER_WITHDRAWN, Reason.JOB_EXISTS, Reason.JOB_STATE,
    Reason.LEASE_EXISTS, Reason.LEASE_NOT_OPEN, Reason.LEASE_STATE, Reason.NO_MATCH,
    Reason.OFFER_MISMATCH, Reason.PRICE_ABOVE_CAP, Reason.FUNDS_MODE_MISMATCH, Reason.UNPAID_DEBT,
    Reason.ACCRUAL_NOT_DUE, Reason.HOUR_ALREADY_ACCRUED, Reason.USAGE_POSITION_FELL,
    Reason.USAGE_INCOMPLETE, Reason.DEPOSIT_EXISTS, Reason.PURCHASE_EXISTS, Reason.TARIFF_VERSION,
    Reason.POLICY_VERSION, Reason.EPOCH_STATE, Reason.EPOCH_NOT_OVER, Reason.EPOCH_OUT_OF_ORDER,
    Reason.CUT_INCOMPLETE, Reason.CHUNK_OUT_OF_ORDER, Reason.REWARDS_MISMATCH,
    Reason.PAYOUT_STATE, Reason.PAYOUT_EXISTS, Reason.CHAIN_TX_STATE, Reason.BURN_STATE,
    Reason.STREAM_MOVED,
)  # fmt: skip

STATUS: dict[Reason, int] = {
    **dict.fromkeys(Reason, _UNPROCESSABLE),
    **dict.fromkeys(_NOT_FOUND, 404),
    **dict.fromkeys(_CONFLICT, 409),
    Reason.CREDIT_TOO_LOW: 402,
    Reason.NOT_PERMITTED: 403,
}
"""Every reason has a status; the default is 422, well-formed but invalid."""


@dataclass(eq=False)
class Problem(Exception):
    """An answer that is a problem document. Not frozen: raising writes the traceback into it."""

    status: int
    code: str
    detail: str = ""
    retryable: bool = False
    errors: tuple[Mapping[str, str], ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def document(self, instance: str, request_id: str) -> dict[str, Any]:
        """The body of the answer; absent means absent."""
        body: dict[str, Any] = {
            "type": f"/problems/{self.code}",
            "title": self.code.replace("_", " "),
            "status": self.status,
            "code": self.code,
            "retryable": self.retryable,
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


def of_refusal(refused: Refused) -> Problem:
    """The problem a refusal is answered with."""
    facts = {name: str(value) for name, value in refused.facts.items() if value is not None}
    return Problem(STATUS[refused.reason], refused.reason.value, detail=str(refused), facts=facts)


def of_validation(error: RequestValidationError) -> Problem:
    """One entry per broken field, each with a JSON pointer and the rule."""
    found = []
    malformed = False
    for problem in error.errors():
        malformed = malformed or problem["type"] in ("json_invalid", "bytes_invalid")
        where = [str(part) for part in problem["loc"] if part != "body"]
        found.append({"pointer": "#/" + "/".join(where), "detail": str(problem["msg"])})
    if malformed:
        return Problem(400, "malformed_json", "the body is not JSON", errors=tuple(found))
    return Problem(422, "invalid", "a field breaks its rule", errors=tuple(found))


def answer(request: Request, problem: Problem) -> JSONResponse:
    """The HTTP answer of a problem."""
    request_id = getattr(request.state, "request_id", "")
    return JSONResponse(
        problem.document(request.url.path, request_id),
        status_code=problem.status,
        media_type=MEDIA_TYPE,
        headers=dict(problem.headers),
    )


def install(app: FastAPI) -> None:
    """Replace the framework's own error forms, or two of them would leak out."""

    @app.exception_handler(Problem)
    async def _problem(request: Request, error: Problem) -> JSONResponse:
        return answer(request, error)

    @app.exception_handler(Refused)
    async def _refused(request: Request, error: Refused) -> JSONResponse:
        return answer(request, of_refusal(error))

    @app.exception_handler(RequestValidationError)
    async def _invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        return answer(request, of_validation(error))

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> JSONResponse:
        codes = {404: "not_found", 405: "method_not_allowed", 413: "too_large"}
        code = codes.get(error.status_code, "http_error")
        return answer(
            request,
            Problem(error.status_code, code, str(error.detail), headers=error.headers or {}),
        )

    @app.exception_handler(Exception)
    async def _broken(request: Request, _error: Exception) -> JSONResponse:
        return answer(request, Problem(500, "internal_error", "the server failed; nothing is lost"))

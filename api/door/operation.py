"""What an operation is: one address and method, who may call it, what it answers, how it can fail.

Each resource file declares its operations; `api/main.py` turns them into routes and refuses to
start when one is incomplete. The OpenAPI document says the same things, because it is made here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from api.door import errors
from api.door.auth import EXECUTOR, KEY, NODE, PUBLIC, Access
from api.door.models import LIST_MAX
from domain.authority.reasons import AuthorityReason
from domain.refusal import Reason

Method = Literal["GET", "POST", "DELETE"]
ON_ACT = (
    "signature_invalid",
    AuthorityReason.ACT_SIGNATURE_VOID.value,
    AuthorityReason.CHECKER_NEEDED.value,
)
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


class FieldError(BaseModel):
    """One broken rule: where, and which."""

    model_config = ConfigDict(extra="forbid")

    pointer: str = Field(examples=["#/max_price_per_gpu_hour/units"])
    detail: str


class ProblemDocument(BaseModel):
    """RFC 9457. Switch on `code`, never on text."""

    model_config = ConfigDict(title="Problem")

    type: str = Field(examples=["/problems/credit_too_low"])
    title: str
    status: int = Field(ge=400, le=599)
    code: str = Field(examples=["credit_too_low"])
    retryable: bool
    instance: str
    request_id: str
    detail: str | None = None
    facts: dict[str, str] | None = None
    errors: list[FieldError] | None = None


ProblemDocument.__name__ = "Problem"


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. `records`: it may record facts, so it needs an Idempotency-Key."""

    method: Method
    path: str
    endpoint: Callable[..., Any]
    access: Access
    answers: Any
    status: int
    problems: tuple[str, ...]
    tag: str
    records: bool
    media_type: str
    raw_items: type[BaseModel] | None = None  # form of each item of a body that we read ourselves
    guarded: bool = False  # needs an If-Match: the ETag of what it changes
    checked: bool = False  # above a limit it takes a second person, who signs
    items_max: int = LIST_MAX  # of a list in its body; other limits are those of its form

    @property
    def name(self) -> str:
        """The operationId, verb_noun."""
        return self.endpoint.__name__

    @property
    def summary(self) -> str:
        doc = self.endpoint.__doc__
        assert doc, f"{self.name} has no docstring"
        return doc.strip().split("\n", 1)[0].rstrip(".")

    @property
    def is_text(self) -> bool:
        """Whether it answers with text as it is, and not with a form of ours."""
        return self.media_type == "text/plain"

    @property
    def file_type(self) -> str | None:
        """The media type of the file it answers with; None: a form of ours, or plain text."""
        is_form = self.media_type in ("application/json", "text/plain")
        return None if is_form or self.method != "GET" else self.media_type

    @property
    def codes(self) -> tuple[str, ...]:
        """Every code it can answer with: its own, and those of the door it stands behind."""
        door = ["malformed_header", "parameter_unknown", "credential_invalid", "rate_limited"]
        door += ["too_many_at_once", "internal_error", "busy", "timed_out", "invalid", "read_only"]
        if PUBLIC not in self.access.audiences:
            door += ["unauthenticated", "audience_wrong"]
        if KEY in self.access.audiences:
            door.append("scope_missing")
            door += ["account_unverified"] if self.method != "GET" else []
        if NODE in self.access.audiences:
            door.append("revoked")
        if self.method == "POST":
            door += ["malformed_json", "too_large", "unsupported_media_type"]
        if self.records:
            door += ["idempotency_key_missing", "idempotency_key_invalid"]
            door += ["idempotency_in_progress", "idempotency_key_reused"]
            door += ["if_match_missing"] if self.guarded else []
            door += [*ON_ACT] if self.checked else []
        else:
            door.append("projection_behind")
        return tuple(dict.fromkeys([*self.problems, *door]))

    def responses(self) -> dict[int | str, dict[str, Any]]:
        """The declared problems, by status, for the OpenAPI document."""
        by_status: dict[int, list[str]] = {}
        for code in self.codes:
            by_status.setdefault(errors.status_of(code), []).append(code)
        return {status: _response(sorted(codes)) for status, codes in sorted(by_status.items())}

    def security(self) -> list[dict[str, list[str]]]:
        """The OpenAPI security requirement; public operations have none."""
        schemes = {EXECUTOR: "executor_key", KEY: "api_key", NODE: "node_key"}
        return [{schemes[each]: []} for each in sorted(self.access.audiences) if each in schemes]


def _response(codes: list[str]) -> dict[str, Any]:
    examples = {code: {"$ref": f"#/components/examples/{code}"} for code in codes}
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        "description": ", ".join(codes),
        "content": {errors.MEDIA_TYPE: {"schema": schema, "examples": examples}},
    }


def example_of(code: str) -> dict[str, Any]:
    """What a problem looks like; every declared one is shown once, under components."""
    document = errors.Problem(errors.status_of(code), code).document("/v1/...", "0" * 16)
    return {"summary": errors.meaning_of(code).split(". ")[0], "value": document}


class Resource:
    """The operations of one resource file."""

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self.operations: list[Operation] = []

    def get(
        self,
        path: str,
        access: Access,
        answers: Any,
        *,
        problems: Iterable[Reason | str] = (),
        media_type: str = "application/json",
    ) -> Callable[[Endpoint], Endpoint]:
        """An operation that reads."""
        return self._add("GET", path, access, answers, 200, problems, False, media_type)

    def post(
        self,
        path: str,
        access: Access,
        answers: Any,
        *,
        status: int = 200,
        problems: Iterable[Reason | str] = (),
        records: bool = True,
        media_type: str = "application/json",
        raw_items: type[BaseModel] | None = None,
        guarded: bool = False,
        checked: bool = False,
        items_max: int = LIST_MAX,
    ) -> Callable[[Endpoint], Endpoint]:
        """An operation that records, unless it says otherwise."""
        return self._add(
            "POST",
            path,
            access,
            answers,
            status,
            problems,
            records,
            media_type,
            raw_items,
            guarded,
            checked,
            items_max,
        )

    def delete(
        self, path: str, access: Access, answers: Any, *, problems: Iterable[Reason | str] = ()
    ) -> Callable[[Endpoint], Endpoint]:
        """An operation that takes something back; twice is once, so it needs no key."""
        return self._add("DELETE", path, access, answers, 200, problems, False, "application/json")

    def _add(
        self,
        method: Method,
        path: str,
        access: Access,
        answers: Any,
        status: int,
        problems: Iterable[Reason | str],
        records: bool,
        media_type: str,
        raw_items: type[BaseModel] | None = None,
        guarded: bool = False,
        checked: bool = False,
        items_max: int = LIST_MAX,
    ) -> Callable[[Endpoint], Endpoint]:
        def add(endpoint: Endpoint) -> Endpoint:
            codes = tuple(each.value if isinstance(each, Reason) else each for each in problems)
            operation = Operation(
                method,
                path,
                endpoint,
                access,
                answers,
                status,
                codes,
                self.tag,
                records,
                media_type,
                raw_items,
                guarded,
                checked,
                items_max,
            )
            for code in codes:
                errors.status_of(code)  # an unknown code stops the service here
            endpoint.operation = operation  # type: ignore[attr-defined]
            self.operations.append(operation)
            return endpoint

        return add

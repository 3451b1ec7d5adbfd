"""The reference of the REST API, drawn from the same OpenAPI document that clients read.

Nothing is written here by hand: an operation that is not in the document is not on a page.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from api.console.visits.reading import refused
from api.console.visits.visit import Visit
from api.door import errors, health
from api.door.operation import Operation

Node = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a body or an answer, or one parameter."""

    name: str
    kind: str
    is_needed: bool
    says: str


@dataclass(frozen=True, slots=True)
class Described:
    """One operation, as the document has it."""

    name: str
    method: str
    path: str
    summary: str
    says: str
    security: tuple[str, ...]
    parameters: tuple[Field, ...]
    body: tuple[Field, ...]
    answer: tuple[Field, ...]
    answers: tuple[tuple[str, str], ...]


async def show(visit: Visit) -> Response:
    """`/docs`: every operation with its sentence, by resource."""
    tags: dict[str, list[Operation]] = {}
    for one in await _all(visit):
        tags.setdefault(one.tag, []).append(one)
    about = visit.site.reference.description
    return visit.show("everybody/docs.html", tags=dict(sorted(tags.items())), about=about)


async def _all(visit: Visit) -> Sequence[Operation]:
    """Every operation. The first visitor has the forms of all rooms imported: nobody waits for it
    but this visitor.
    """
    return await run_in_threadpool(visit.site.reference.operations)


async def show_tag(visit: Visit) -> Response:
    """`/docs/{tag}`: the operations of one resource, whole."""
    tag = visit.params["tag"]
    if tag not in {one.tag for one in await _all(visit)}:
        raise refused("not_found", "the API has no such resource")
    document = await run_in_threadpool(visit.site.reference.part, tag)
    return visit.show("everybody/docs_tag.html", tag=tag, operations=list(_described(document)))


async def show_problems(visit: Visit) -> Response:
    """`/problems`: every code that a problem document can have."""
    found = [(code, errors.title_of(code)) for code in health.codes()]
    return visit.show("everybody/problems.html", problems=found)


async def show_problem(visit: Visit) -> Response:
    """`/problems/{code}`: what a problem's `type` leads to."""
    code = visit.params["code"]
    if code not in health.codes():
        raise refused("not_found", "there is no such problem")
    return visit.show(
        "everybody/problem.html",
        code=code,
        title=errors.title_of(code),
        meaning=errors.meaning_of(code),
        answered=errors.status_of(code),
        is_retryable=code in errors.RETRYABLE,
    )


def _described(document: Node) -> Iterator[Described]:
    for path, methods in document["paths"].items():
        for method, node in methods.items():
            schema = _schema_of(node.get("requestBody", {}))
            told: Node = node["responses"]
            good: Node = next((one for code, one in told.items() if code[0] == "2"), {})
            yield Described(
                name=node["operationId"],
                method=method.upper(),
                path=path,
                summary=node["summary"],
                says=node.get("description", ""),
                security=tuple(sorted(_security(node.get("security", [])))),
                parameters=tuple(_parameters(document, node)),
                body=tuple(_fields(document, schema)),
                answer=tuple(_fields(document, _schema_of(good))),
                answers=tuple(
                    (code, _response(document, one).get("description", ""))
                    for code, one in sorted(told.items())
                ),
            )


def _response(document: Node, node: Node) -> Node:
    name = str(node.get("$ref", ""))
    found: Node = document["components"]["responses"][name.rpartition("/")[2]] if name else node
    return found


def _security(found: list[Mapping[str, list[str]]]) -> Iterator[str]:
    for one in found:
        for name, scopes in one.items():
            yield f"{name}: {' or '.join(scopes)}" if scopes else name


def _parameters(document: Node, node: Node) -> Iterator[Field]:
    for one in node.get("parameters", []):
        kind = f"{_kind(document, one.get('schema', {}))}, in the {one['in']}"
        says = one.get("description") or one.get("schema", {}).get("description", "")
        yield Field(one["name"], kind, bool(one.get("required")), says)


def _schema_of(node: Node) -> Node:
    for media in node.get("content", {}).values():
        found: Node = media.get("schema", {})
        return found
    return {}


def _fields(document: Node, schema: Node) -> Iterator[Field]:
    found = _resolved(document, schema)
    needed = set(found.get("required", ()))
    for name, one in found.get("properties", {}).items():
        says = one.get("description") or _resolved(document, one).get("description", "")
        yield Field(name, _kind(document, one), name in needed, says)


def _resolved(document: Node, schema: Node) -> Node:
    name = str(schema.get("$ref", ""))
    found: Node = document["components"]["schemas"][name.rpartition("/")[2]] if name else schema
    return found


def _kind(document: Node, schema: Node) -> str:
    """A type in a word or two: `list of Money`, `text or none`."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return " | ".join(json.dumps(one) for one in schema["enum"])
    if "const" in schema:
        return json.dumps(schema["const"])
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return " or ".join(_kind(document, one) for one in schema[several])
    if schema.get("type") == "array":
        return f"list of {_kind(document, schema.get('items', {}))}"
    words = {"string": "text", "null": "none", "object": "object", "integer": "integer"}
    kind = str(schema.get("type", "any"))
    form = f" ({schema['format']})" if "format" in schema else ""
    return words.get(kind, kind) + form

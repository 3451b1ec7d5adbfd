"""The OpenAPI 3.1 document: the framework's, with our problems and without what it says wrongly.

    what an answer leaves out when it is absent is never null in its schema
    a bound is an integer: 9007199254740991, not 9007199254740991.0
    the problems of one status are written once, under components, and referred to

The framework would publish its own error form beside ours, call every optional field of an answer
nullable, and write every bound as a float.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from fastapi.openapi.utils import get_openapi
from starlette.routing import BaseRoute

from api.door.errors import MEDIA_TYPE
from api.door.operation import Operation, ProblemDocument, example_of

REF = "#/components/schemas/"
RESPONSE_REF = "#/components/responses/"
RESPONSE_NAME_MAX = 64
"""Longer lists of codes are named by their hash; their description has them all."""
NOT_OURS = ("HTTPValidationError", "ValidationError")


def of(
    title: str,
    version: str,
    description: str,
    routes: Sequence[BaseRoute],
    operations: Sequence[Operation],
) -> dict[str, Any]:
    """The document of these operations, which these routes lead to."""
    tags = dict.fromkeys(operation.tag for operation in operations)
    whole = get_openapi(
        title=title,
        version=version,
        description=description,
        routes=routes,
        tags=[{"name": tag} for tag in tags],
    )
    problem = ProblemDocument.model_json_schema(ref_template=REF + "{model}")
    schemas = whole["components"]["schemas"]
    schemas.update(problem.pop("$defs"))
    schemas["Problem"] = problem
    for operation in operations:
        if operation.raw_items is not None:
            items = operation.raw_items.model_json_schema(ref_template=REF + "{model}")
            schemas.update(items.pop("$defs", {}))
            schemas[operation.raw_items.__name__] = items
    for name in NOT_OURS:
        schemas.pop(name, None)
    asked = _reachable(whole, _request_bodies(whole))
    for name, schema in schemas.items():
        if name not in asked:
            _without_null(schema)
    found: dict[str, Any] = whole
    components = found["components"]
    components["schemas"] = dict(sorted(components["schemas"].items()))
    codes = sorted({code for operation in operations for code in operation.codes})
    components["examples"] = {code: example_of(code) for code in codes}
    components["responses"] = _shared_problems(found)
    components["securitySchemes"] = {
        "api_key": {"type": "http", "scheme": "bearer", "description": "ts_live_..."},
        "node_key": {"type": "http", "scheme": "bearer", "description": "ts_node_..."},
        "executor_key": {"type": "http", "scheme": "bearer", "description": "ts_exec_..."},
    }
    exact: dict[str, Any] = _exact(found)
    return exact


def _shared_problems(document: dict[str, Any]) -> dict[str, Any]:
    """Every problem response by its name; the operations refer to it from now on."""
    shared: dict[str, Any] = {}
    for methods in document["paths"].values():
        for operation in methods.values():
            for status, response in operation["responses"].items():
                if MEDIA_TYPE in response.get("content", {}):
                    name = _problem_name(status, list(response["content"][MEDIA_TYPE]["examples"]))
                    assert shared.setdefault(name, response) == response, name
                    operation["responses"][status] = {"$ref": RESPONSE_REF + name}
    return dict(sorted(shared.items()))


def _problem_name(status: str, codes: list[str]) -> str:
    """The codes themselves where they fit into a name. The same codes have the same name."""
    name = ".".join(codes)
    if len(name) <= RESPONSE_NAME_MAX:
        return name
    return f"{status}.{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _exact(value: Any) -> Any:
    """The same document with whole numbers where the framework made floats of them."""
    if isinstance(value, list):
        return [_exact(inner) for inner in value]
    if isinstance(value, dict):
        return {name: _exact(inner) for name, inner in value.items()}
    if isinstance(value, float):
        assert value.is_integer(), f"{value} has a fraction"
        return int(value)
    return value


def _request_bodies(document: dict[str, Any]) -> list[Any]:
    return [
        operation["requestBody"]
        for methods in document["paths"].values()
        for operation in methods.values()
        if "requestBody" in operation
    ]


def _reachable(document: dict[str, Any], roots: list[Any]) -> set[str]:
    """Names of the schemas that something refers to, directly or not."""
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, dict):
            name = str(value.get("$ref", "")).removeprefix(REF)
            if name in document["components"]["schemas"] and name not in found:
                found.add(name)
                waiting.append(document["components"]["schemas"][name])
            waiting.extend(value.values())
    return found


def _without_null(schema: dict[str, Any]) -> None:
    """`x | null` of an answer's form becomes `x`, for absent means absent."""
    for field, inner in schema.get("properties", {}).items():
        kinds = [kind for kind in inner.get("anyOf", ()) if kind.get("type") != "null"]
        if len(kinds) == 1 and len(inner["anyOf"]) == 2:
            kept = {name: value for name, value in inner.items() if name != "anyOf"}
            kept.pop("default", None)
            schema["properties"][field] = {**kinds[0], **kept}

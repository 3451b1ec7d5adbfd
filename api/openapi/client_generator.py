"""Makes the written part of `tallystick_client` from the OpenAPI document: `forms`, `client` and
`async_client`.

One TypedDict per schema, one method per operation, one iterator per list, nothing clever. Not a
general generator: it knows the shapes our own document uses and stops at any other. How a call is
made is written by hand in `tallystick_client/calls.py`.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Schema = Mapping[str, Any]

FORMS_HEAD = '''\
"""The forms that are sent and answered. Written by `python -m api.openapi.write`: do not edit.

One TypedDict per schema of docs/reference/openapi.json.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict
'''

CLIENT_HEAD = '''\
"""The REST API's operations{of}. Written by `python -m api.openapi.write`: do not edit.

Every method is one operation of docs/reference/openapi.json, and `iter_...` reads a list to its
end. Refusals are raised as `ApiProblem`; switch on its `code`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

from tallystick_client.calls import {calls}, at, {items}

if TYPE_CHECKING:
    from collections.abc import {iterator}

    from tallystick_client import forms


class {name}({calls}):
    """Every operation of the API{of}."""
'''


@dataclass(frozen=True, slots=True)
class Kind:
    """One of the two clients: what its words are."""

    name: str
    calls: str
    items: str
    iterator: str
    of: str = ""
    define: str = "def"
    wait: str = ""


SYNC = Kind("Client", "Calls", "items", "Iterator")
ASYNC = Kind(
    "AsyncClient",
    "AsyncCalls",
    "items_async",
    "AsyncIterator",
    of=" for asyncio",
    define="async def",
    wait="await ",
)


def forms(document: Schema) -> str:
    """The source of the forms. The same document gives the same bytes."""
    schemas = document["components"]["schemas"]
    return FORMS_HEAD + "".join(
        _typed_dict(name, schema) for name, schema in sorted(schemas.items())
    )


def client(document: Schema, kind: Kind) -> str:
    """The source of a client. The same document gives the same bytes."""
    told = {name: getattr(kind, name) for name in ("name", "calls", "items", "iterator", "of")}
    text = CLIENT_HEAD.format(**told)
    for method, path, operation in _operations(document):
        text += _method(kind, method, path, operation)
        item = _item_type(document, operation)
        if item is not None:
            text += _iterator(kind, operation, item)
    return text


_JSON = "application/json"
SIGNED_BY_NODES = {"ingest_usage", "join_node"}
"""A node signs the very bytes it sends; this client holds no key to do so."""


def _operations(document: Schema) -> Iterator[tuple[str, str, Schema]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if operation["operationId"] not in SIGNED_BY_NODES:
                yield method.upper(), path, operation


# --- types -----------------------------------------------------------------------------------


def _typed_dict(name: str, schema: Schema) -> str:
    """One form. Fields whose names are no Python names need the functional syntax."""
    required = set(schema.get("required", ()))
    fields = [
        (field, _type(inner) if field in required else f"NotRequired[{_type(inner)}]")
        for field, inner in schema.get("properties", {}).items()
    ]
    if any(keyword.iskeyword(field) for field, _ in fields):
        body = "".join(f'        "{field}": {kind!r},\n' for field, kind in fields)
        return f'\n{name} = TypedDict(\n    "{name}",\n    {{\n{body}    }},\n)\n'
    body = "".join(f"    {field}: {kind}\n" for field, kind in fields)
    doc = _doc(schema.get("description", ""), 4)
    return f"\n\nclass {name}(TypedDict):\n{doc}{body or ('' if doc else '    pass' + chr(10))}"


def _type(schema: Schema, forms: str = "") -> str:
    """Its annotation; `forms` stands before the name of a form."""
    if "$ref" in schema:
        return forms + str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(_type(inner, forms) for inner in schema["anyOf"]))
    if "enum" in schema:
        return f"Literal[{', '.join(_quoted(value) for value in schema['enum'])}]"
    if "const" in schema:
        return f"Literal[{_quoted(schema['const'])}]"
    match schema.get("type"):
        case "array":
            return f"list[{_type(schema['items'], forms)}]"
        case "object":
            inner = schema.get("additionalProperties")
            if isinstance(inner, dict):
                return f"dict[str, {_type(inner, forms)}]"
            return "dict[str, Any]"
        case "string" | "integer" | "boolean" | "null" as kind:
            return {"string": "str", "integer": "int", "boolean": "bool", "null": "None"}[kind]
        case _:
            raise AssertionError(f"a shape this generator does not know: {schema}")


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _doc(text: str, indent: int) -> str:
    text = re.sub(r"\s+", " ", text).strip()
    if not text:
        return ""
    pad, lines, line = " " * indent, [], '"""'
    for word in text.split(" "):
        if len(line) + len(word) + 1 + indent > 92:
            lines.append(line)
            line = word
        else:
            line += word if line.endswith('"""') else f" {word}"
    last = f'{line}"""' if not lines else f'{line}\n{pad}"""'
    return "".join(f"{pad}{each}\n" for each in [*lines, last])


# --- operations ------------------------------------------------------------------------------


def _method(kind: Kind, method: str, path: str, operation: Schema) -> str:
    parameters = operation.get("parameters", ())
    in_path = [one["name"] for one in parameters if one["in"] == "path"]
    in_query = [one for one in parameters if one["in"] == "query"]
    records = any(one["name"] == "Idempotency-Key" for one in parameters)
    body = _body_type(operation)
    answer = _answer_type(operation)
    signature = _signature(kind.define, operation["operationId"], _arguments(operation), answer)
    doc = _doc(operation["summary"] + ".", 8)
    passed = [f'"{method}"', _path(path, in_path)]
    if in_query:
        pairs = ", ".join(f'"{one["name"]}": {_name(one["name"])}' for one in in_query)
        passed.append(f"query={{{pairs}}}")
    passed += ["body=body"] if body else []
    media_type = _media_type(operation) if body else _JSON
    passed += [f'media_type="{media_type}"'] if media_type != _JSON else []
    passed += ["if_match=if_match"] if _is_guarded(operation) else []
    passed += ["idempotency_key=idempotency_key", "records=True"] if records else []
    call = "".join(f"            {each},\n" for each in passed)
    return f"\n{signature}{doc}        found = {kind.wait}self._call(\n{call}        )\n" + (
        f'        return cast("{answer}", found)\n'
    )


def _iterator(kind: Kind, operation: Schema, item: str) -> str:
    """`iter_leases` of `list_leases`: the same arguments, every item in turn."""
    name = operation["operationId"]
    of = name.removeprefix("list_").removeprefix("read_").removeprefix("search_")
    parameters = operation.get("parameters", ())
    passed = [one["name"] for one in parameters if one["in"] == "path"]
    queries = [_name(one["name"]) for one in parameters if one["in"] == "query"]
    passed += ["cursor=at_cursor" if each == "cursor" else f"{each}={each}" for each in queries]
    answer = f"{kind.iterator}[{item}]"
    signature = _signature("def", f"iter_{of}", _arguments(operation), answer)
    doc = f'        """Every item of `{name}` from `cursor` on, `limit` at a time."""\n'
    call = f"self.{name}({', '.join(passed)})"
    return f"\n{signature}{doc}        return {kind.items}(lambda at_cursor: {call}, cursor)\n"


def _signature(define: str, name: str, arguments: list[str], answer: str) -> str:
    told = "".join(f"        {argument},\n" for argument in arguments)
    return f"    {define} {name}(\n{told}    ) -> {answer}:\n"


def _arguments(operation: Schema) -> list[str]:
    parameters = operation.get("parameters", ())
    in_path = [one["name"] for one in parameters if one["in"] == "path"]
    in_query = [one for one in parameters if one["in"] == "query"]
    body = _body_type(operation)
    arguments = ["self", *(f"{name}: {_of(parameters, name)}" for name in in_path)]
    arguments += [f"body: {body}"] if body else []
    by_name = [f"{_name(one['name'])}: {_of_query(one)}" for one in in_query]
    by_name += ["if_match: str"] if _is_guarded(operation) else []
    records = any(one["name"] == "Idempotency-Key" for one in parameters)
    by_name += ["idempotency_key: str | None = None"] if records else []
    return [*arguments, "*", *by_name] if by_name else arguments


def _is_guarded(operation: Schema) -> bool:
    return any(one["name"] == "If-Match" for one in operation.get("parameters", ()))


def _item_type(document: Schema, operation: Schema) -> str | None:
    """What a list is of; None for an operation that is no list with a cursor."""
    if not any(one["name"] == "cursor" for one in operation.get("parameters", ())):
        return None
    form = _answer_type(operation).removeprefix("forms.")
    properties = document["components"]["schemas"][form]["properties"]
    if not {"data", "has_more", "next_cursor"} <= properties.keys():
        return None
    return _type(properties["data"]["items"], "forms.")


def _path(path: str, names: list[str]) -> str:
    told = "".join(f", {name}={name}" for name in names)
    return f'at("{path}"{told})' if names else f'"{path}"'


def _name(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) or name == "type" else name


def _of(parameters: Any, name: str) -> str:
    return _type(next(one for one in parameters if one["name"] == name)["schema"], "forms.")


def _of_query(parameter: Schema) -> str:
    kind = _type(parameter["schema"], "forms.")
    if parameter.get("required"):
        return kind
    return f"{kind} = None" if "None" in kind.split(" | ") else f"{kind} | None = None"


def _body_type(operation: Schema) -> str | None:
    if "requestBody" not in operation:
        return None
    content = operation["requestBody"]["content"]
    return _type(content[_media_type(operation)]["schema"], "forms.")


def _media_type(operation: Schema) -> str:
    """Of a body: JSON, or the first that is declared."""
    content = operation["requestBody"]["content"]
    return _JSON if _JSON in content else str(next(iter(content)))


def _answer_type(operation: Schema) -> str:
    status = min(code for code in operation["responses"] if code.startswith("2"))
    content = operation["responses"][status]["content"]
    if "application/json" not in content:
        return "str" if "text/plain" in content else "bytes"
    return _type(content["application/json"]["schema"], "forms.")

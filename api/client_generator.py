"""Makes the typed Python client from the OpenAPI document: `generate(document) -> source`.

One TypedDict per schema, one method per operation, nothing clever. Not a general generator: it
knows the shapes our own document uses and stops at any other.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]

HEAD = '''\
"""The typed client of the REST API. Written by `python -m api.openapi`: do not edit.

Every method is one operation of docs/reference/openapi.json. Refusals are raised as `ApiProblem`;
switch on its `code`. Recording calls send an Idempotency-Key, a fresh one unless you give your own:
give your own to ask again for a lost answer.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NotRequired, TypedDict, cast
from urllib.parse import quote

import httpx

TIMEOUT_SECONDS = 30


class ApiProblem(Exception):
    """The server's answer is a problem document."""

    def __init__(self, document: Problem, headers: Mapping[str, str]) -> None:
        super().__init__(document.get("code"), document.get("detail"))
        self.document = document
        self.code = document["code"]
        self.status = document["status"]
        self.is_retryable = document["retryable"]
        self.retry_after_seconds = int(headers.get("Retry-After", "0"))


class _Calls:
    """How a call is made; the operations are below."""

    def __init__(
        self, url: str, key: str | None = None, *, http: httpx.Client | None = None
    ) -> None:
        self._http = http or httpx.Client(base_url=url, timeout=TIMEOUT_SECONDS)
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self.position = 0

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Client:
        return cast("Client", self)

    def __exit__(self, *_: object) -> None:
        self.close()

    def download(self, path: str) -> Iterator[bytes]:
        """The file at an address of this API, a piece at a time."""
        with self._http.stream("GET", path, headers=self._headers, timeout=None) as response:
            if response.status_code >= 400:
                response.read()
                raise ApiProblem(_problem(response), response.headers)
            yield from response.iter_bytes()

    def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        idempotency_key: str | None = None,
        records: bool = False,
        if_match: str | None = None,
        media_type: str | None = None,
    ) -> Any:
        headers = dict(self._headers)
        if media_type is not None:
            headers["Content-Type"] = media_type
        if if_match is not None:
            headers["If-Match"] = if_match
        if records:
            headers["Idempotency-Key"] = idempotency_key or secrets.token_hex(16)
        elif method == "GET" and self.position:
            # Read your own writes, whichever process answers.
            headers["Tallystick-Min-Position"] = str(self.position)
        asked = {name: _text(value) for name, value in (query or {}).items() if value is not None}
        response = self._http.request(
            method, path, params=asked, json=body, headers=headers
        )
        if response.status_code >= 400:
            raise ApiProblem(_problem(response), response.headers)
        self.position = max(self.position, int(response.headers.get("Tallystick-Position", "0")))
        answered = response.headers.get("content-type", "").partition(";")[0]
        if answered == "application/json":
            return response.json()
        return response.text if answered == "text/plain" else response.content


def _at(path: str, **names: object) -> str:
    return path.format(**{name: quote(str(value), safe="") for name, value in names.items()})


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _problem(response: httpx.Response) -> Problem:
    """The problem document; something like one where a proxy answered."""
    try:
        document = response.json()
    except ValueError:
        document = None
    if isinstance(document, dict) and "code" in document:
        return cast("Problem", document)
    return {
        "type": "/problems/http_error", "title": "Not an answer of the API",
        "status": response.status_code, "code": "http_error", "retryable": False,
        "instance": str(response.url), "request_id": "",
    }

'''

PAGES = '''

def pages(first: Any, following: Any) -> Iterator[Any]:
    """Every item of a list: `pages(client.list_jobs(), lambda c: client.list_jobs(cursor=c))`."""
    page = first
    while True:
        yield from page["data"]
        if not page["has_more"]:
            return
        page = following(page["next_cursor"])
'''


def generate(document: Schema) -> str:
    """The source of the client. The same document gives the same bytes."""
    schemas = document["components"]["schemas"]
    parts = [HEAD]
    parts += [_typed_dict(name, schema) for name, schema in sorted(schemas.items())]
    parts.append('\n\nclass Client(_Calls):\n    """Every operation of the API."""\n')
    parts += [_method(*one) for one in _operations(document)]
    parts.append(PAGES)
    return "".join(parts)


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


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(_type(inner) for inner in schema["anyOf"]))
    if "enum" in schema:
        return f"Literal[{', '.join(_quoted(value) for value in schema['enum'])}]"
    if "const" in schema:
        return f"Literal[{_quoted(schema['const'])}]"
    match schema.get("type"):
        case "array":
            return f"list[{_type(schema['items'])}]"
        case "object":
            inner = schema.get("additionalProperties")
            return f"dict[str, {_type(inner)}]" if isinstance(inner, dict) else "dict[str, Any]"
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


def _method(method: str, path: str, operation: Schema) -> str:
    parameters = operation.get("parameters", ())
    in_path = [one["name"] for one in parameters if one["in"] == "path"]
    in_query = [one for one in parameters if one["in"] == "query"]
    records = any(one["name"] == "Idempotency-Key" for one in parameters)
    body = _body_type(operation)
    arguments = ["self", *(f"{name}: {_of(parameters, name)}" for name in in_path)]
    arguments += [f"body: {body}"] if body else []
    by_name = [f"{_name(one['name'])}: {_of_query(one)}" for one in in_query]
    guarded = any(one["name"] == "If-Match" for one in parameters)
    by_name += ["if_match: str"] if guarded else []
    by_name += ["idempotency_key: str | None = None"] if records else []
    arguments += ["*", *by_name] if by_name else []
    answer = _answer_type(operation)
    signature = f"    def {operation['operationId']}(\n"
    signature += "".join(f"        {argument},\n" for argument in arguments)
    signature += f"    ) -> {answer}:\n"
    doc = _doc(operation["summary"] + ".", 8)
    passed = [f'"{method}"', _path(path, in_path)]
    if in_query:
        pairs = ", ".join(f'"{one["name"]}": {_name(one["name"])}' for one in in_query)
        passed.append(f"query={{{pairs}}}")
    passed += ["body=body"] if body else []
    media_type = _media_type(operation) if body else _JSON
    passed += [f'media_type="{media_type}"'] if media_type != _JSON else []
    passed += ["if_match=if_match"] if guarded else []
    passed += ["idempotency_key=idempotency_key", "records=True"] if records else []
    call = "".join(f"            {each},\n" for each in passed)
    return f"\n{signature}{doc}        found = self._call(\n{call}        )\n" + (
        f'        return cast("{answer}", found)\n'
    )


def _path(path: str, names: list[str]) -> str:
    told = "".join(f", {name}={name}" for name in names)
    return f'_at("{path}"{told})' if names else f'"{path}"'


def _name(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) or name == "type" else name


def _of(parameters: Any, name: str) -> str:
    return _type(next(one for one in parameters if one["name"] == name)["schema"])


def _of_query(parameter: Schema) -> str:
    kind = _type(parameter["schema"])
    if parameter.get("required"):
        return kind
    return f"{kind} = None" if "None" in kind.split(" | ") else f"{kind} | None = None"


def _body_type(operation: Schema) -> str | None:
    if "requestBody" not in operation:
        return None
    return _type(operation["requestBody"]["content"][_media_type(operation)]["schema"])


def _media_type(operation: Schema) -> str:
    """Of a body: JSON, or the first that is declared."""
    content = operation["requestBody"]["content"]
    return _JSON if _JSON in content else str(next(iter(content)))


def _answer_type(operation: Schema) -> str:
    status = min(code for code in operation["responses"] if code.startswith("2"))
    content = operation["responses"][status]["content"]
    if "application/json" not in content:
        return "str" if "text/plain" in content else "bytes"
    return _type(content["application/json"]["schema"])

"""Whatever is sent: no 5xx, and every answer is one that the OpenAPI document declares.

`make test` sends EXAMPLES_SHORT cases to every operation, valid to one and broken on purpose to the
next, and `make test-slow` EXAMPLES of each kind, the same ones always. A seed sends as many others:
`python -m tests.passes requests 0 10` makes it 200 an operation. A case costs 20 ms of a processor,
most of it to think it up.
"""

from __future__ import annotations

import json
import tempfile
import traceback
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from api.main import operations
from api.openapi.write import DOCUMENT
from tests.scenes.server import Scene, opened
from tests.seeds.scenes import postgres_with_views

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
EXAMPLES = 10
EXAMPLES_SHORT = 1

DECLARED = operations()
NAMES = [operation.name for operation in DECLARED]


# The pool of connections draws from `random` in its own thread, and Hypothesis takes that for the
# strategy's doing.
pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")


@cache
def _documented() -> dict[str, Any]:
    """The operations of the committed document by their name; they are the declared ones."""
    schema = schemathesis.openapi.from_dict(json.loads(DOCUMENT.read_bytes()))
    named = {}
    for found in schema.get_all_operations():
        assert isinstance(found, Ok), found
        named[found.ok().definition.raw["operationId"]] = found.ok()
    assert named.keys() == set(NAMES)
    return named


def _send(scene: Scene, case: Any, key: str | None) -> Any:
    """The case as a request to our server, with this key."""
    if case.path == "/v1/lease-events":
        case.query = {name: v for name, v in (case.query or {}).items() if name != "seconds"}
    told = case.as_transport_kwargs(base_url="http://testserver")
    headers = {name: str(value) for name, value in (told.get("headers") or {}).items()}
    headers = {
        name: value
        for name, value in headers.items()
        if value.isascii() and not name.lower().startswith("tallystick-min-")  # 2 s each
    }
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    content = told.get("data")
    if "json" in told:
        return scene.http.request(
            told["method"],
            told["url"],
            params=told.get("params"),
            headers=headers,
            json=told["json"],
        )
    if content is not None and not isinstance(content, bytes | str):
        content = str(content)
    return scene.http.request(
        told["method"], told["url"], params=told.get("params"), headers=headers, content=content
    )


def _run(
    scene: Scene, name: str, mode: Any, count: int = EXAMPLES, seed: int | None = None
) -> None:
    """Cases with the key of one who may, the same ones always or those of a seed; each answer is
    held against the document.
    """
    operation = _documented()[name]
    access = next(one.access for one in DECLARED if one.name == name)
    node = access.audiences == {"node"}
    key = scene.provider.node.key if node else _everything(scene)

    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=seed is None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def sent(case: Any) -> None:
        case.validate_response(_send(scene, case, key), checks=CHECKS)

    if seed is not None:
        hypothesis.seed(seed)(sent)
    sent()


def _everything(scene: Scene) -> str:
    """A key of the operator's account holds every scope."""
    assert scene.operator.key is not None
    return scene.operator.key


MODES = list(GenerationMode)
ONE_EACH = [
    pytest.param(name, MODES[at % len(MODES)], id=f"{name}-{MODES[at % len(MODES)].value}")
    for at, name in enumerate(NAMES)
]
"""A valid request to each second operation, a broken one to the others."""


@pytest.mark.parametrize(("name", "mode"), ONE_EACH)
def test_nothing_that_is_sent_breaks_the_server_or_its_word(
    name: str, mode: Any, shared: Scene
) -> None:
    _run(shared, name, mode, EXAMPLES_SHORT)


@pytest.mark.slow("::test_nothing_that_is_sent_breaks_the_server_or_its_word")
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: str(mode.value))
@pytest.mark.parametrize("name", NAMES)
def test_nothing_more_that_is_sent_breaks_the_server_or_its_word(
    name: str, mode: Any, shared: Scene
) -> None:
    _run(shared, name, mode)


@contextmanager
def seeded_scene() -> Generator[Scene, None, None]:
    warnings.filterwarnings("ignore", "Do not use the `random` module inside strategies")
    with (
        postgres_with_views() as (postgres, template),
        tempfile.TemporaryDirectory(prefix="tally") as folder,
        opened(postgres.create_database("requests", template=template), Path(folder)) as scene,
    ):
        yield scene


def run(seed: int, scene: Scene) -> None:
    """Cases of each kind to every operation; all that fail are told."""
    failed = []
    for name in NAMES:
        for mode in GenerationMode:
            try:
                _run(scene, name, mode, seed=seed)
            except Exception:
                failed.append(f"{name}, {mode.value}: {traceback.format_exc()[-3_000:]}")
    assert not failed, "\n".join(failed)

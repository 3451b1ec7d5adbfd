"""The form of a workspace: what it may hold, and that its digest covers all of it."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.jobs import workspace as rules
from domain.jobs.plan import Reference, require_references, workspace_of
from domain.jobs.workspace import PIECE_BYTES, File, Workspace, WorkspaceInvalid
from domain.money import MoneyReason
from domain.refusal import Refused
from domain.trust.reasons import TrustReason
from tests.examples import examples

SALT = "5a" * 16
ONE = File("train.py", False, 6, (sha256(b"hello\n").hexdigest(),))
WHOLE = Workspace(
    salt=SALT,
    files=(ONE, File("bin/start", True, 0, ())),
    environment=(("EPOCHS", "3"),),
    secrets=("TOKEN",),
    results=("out",),
)
DEEP = [
    {"path": f"{n}/{'a/' * 500}f", "is_program": False, "size": 0, "sha256": []} for n in range(20)
]
"""Few files, and more folders than a disk should be asked for."""
CHANGES: list[dict[str, Any]] = [
    {"salt": "5b" * 16},
    {"files": (ONE,)},
    {"files": (replace(ONE, is_program=True), File("bin/start", True, 0, ()))},
    {"environment": (("EPOCHS", "4"),)},
    {"secrets": ("OTHER",)},
    {"results": ("out", "log")},
]


def test_what_is_sent_is_read_alike_and_its_digest_covers_every_part() -> None:
    assert rules.read(rules.document(WHOLE)) == WHOLE
    digests = {rules.digest(replace(WHOLE, **change)) for change in CHANGES}
    assert len({*digests, rules.digest(WHOLE)}) == len(CHANGES) + 1


@pytest.mark.parametrize(
    ("path", "is_good"),
    [
        ("a", True),
        ("a/b.py", True),
        ("..a/b..", True),
        ("zeile 1\n", True),
        ("", False),
        ("/a", False),
        ("a/", False),
        ("a//b", False),
        ("..", False),
        ("a/../b", False),
        ("./a", False),
        ("a\0b", False),
        ("\ud800", False),
        ("a" * 256, False),
        ("/".join(["ab"] * 400), False),
    ],
)
def test_a_path_stays_below_the_folder(path: str, is_good: bool) -> None:
    assert (rules.path_rule(path) is None) == is_good


@given(st.text(st.sampled_from("./ab\0"), max_size=12))
@examples(200)
def test_no_accepted_path_leaves_the_folder(path: str) -> None:
    """place of an accepted path == below the root, by name alone"""
    import posixpath

    if rules.path_rule(path) is None:
        assert posixpath.normpath(f"/folder/{path}") == f"/folder/{path}"


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"files": [{"path": "a", "is_program": False, "size": 1, "sha256": []}]}, "sha256"),
        ({"files": [{"path": "a", "is_program": 1, "size": 0, "sha256": []}]}, "is_program"),
        ({"files": [{"path": "a", "is_program": False, "size": -1, "sha256": []}]}, "size"),
        ({"files": [{"path": "a", "is_program": False, "size": 1, "sha256": ["zz"]}]}, "hex"),
        ({"files": [{"path": "a", "size": 0, "sha256": []}]}, "nothing else"),
        ({"environment": {"LD": 1}}, "a text"),
        ({"environment": {"TALLYSTICK_PORT": "1"}}, "the node sets"),
        ({"environment": {"CUDA_VISIBLE_DEVICES": "1"}}, "the node sets"),
        ({"environment": {"1A": "1"}}, "letters"),
        ({"environment": {"A": "a\0b"}}, "a text of"),
        ({"environment": {f"A{n}": "v" * 32_768 for n in range(5)}}, "together"),
        ({"environment": {"TOKEN": "1"}}, "not both"),
        ({"secrets": ["A", "A"]}, "once"),
        ({"results": ["../up"]}, "below the folder"),
        ({"files": [*DEEP]}, "folders"),
        ({"salt": "5a"}, "salt"),
        ({"more": 1}, "nothing else"),
    ],
)
def test_a_workspace_that_breaks_a_rule_is_refused_with_it(
    change: dict[str, Any], rule: str
) -> None:
    with pytest.raises(WorkspaceInvalid, match=rule):
        rules.read({**rules.document(WHOLE), **change})


def _files(*files: File) -> Any:
    return rules.document(Workspace(salt=SALT, files=files))["files"]


def test_a_path_is_one_file_and_a_hash_has_one_length() -> None:
    for files, rule in (
        (_files(ONE, ONE), "once"),
        (_files(File("a", False, 0, ()), File("a/b", False, 0, ())), "a file and a folder"),
        (_files(ONE, replace(ONE, path="b", size=7)), "two lengths"),
    ):
        with pytest.raises(WorkspaceInvalid, match=rule):
            rules.read_files(files)


@given(st.integers(0, 5 * PIECE_BYTES))
@examples(60)
def test_the_pieces_of_a_file_add_up_to_it(size: int) -> None:
    count = rules.count_of_pieces(size)
    file = File("a", False, size, tuple(f"{n:064x}" for n in range(count)))
    assert sum(rules.pieces_of((file,)).values()) == size
    assert all(1 <= length <= PIECE_BYTES for length in rules.pieces_of((file,)).values())


def test_pieces_travel_together_within_the_bounds_of_one_request() -> None:
    bodies = [b"x"] * 1_300 + [bytes(PIECE_BYTES)] * 3 + [b"y"]
    batches = list(rules.batches(bodies))
    assert [one for batch in batches for one in batch] == bodies
    assert [len(batch) for batch in batches] == [512, 512, 277, 1, 2]
    assert all(sum(map(len, batch)) <= rules.BATCH_BYTES_MAX for batch in batches)
    assert list(rules.batches([])) == []


def test_a_job_names_one_workspace_by_its_digest() -> None:
    digest = rules.digest(WHOLE)
    one = Reference("workspace", digest)
    require_references([one])
    assert workspace_of([Reference("dataset", "s3://a"), one]) == digest
    assert workspace_of([]) is None
    with pytest.raises(Refused) as twice:
        require_references([one, Reference("workspace", "0" * 64)])
    assert twice.value.reason is MoneyReason.DUPLICATE_ID
    with pytest.raises(Refused) as other:
        require_references([Reference("workspace", "s3://a")])
    assert other.value.reason is TrustReason.REFERENCE_INVALID

"""Paths in a store of data stay below its root, however they are written."""

from __future__ import annotations

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.refusal import Refused
from domain.sites.paths import joined, place_of
from domain.sites.reasons import SitesReason
from tests.examples import examples

ROOTS = ("/", "/dir2", "/dir2/sub")
TRICKS = [
    "",
    "subdir2",
    "..",
    "/..",
    "/../dir1",
    "/subdir2/../../dir1",
    "/subdir2/..",
    "/./subdir2",
    "/.ssh",
    "//server/share",
    "/subdir2//x",
    "/subdir2/",
    "\\subdir2",
    "/sub\\..\\..\\dir1",
    "/C:/Windows",
    "file:///etc/passwd",
    "~/x",
    "/~root",
    "/%2e%2e/dir1",
    "/..%2fdir1",
    "/%252e%252e",
    "/\u2024\u2024/dir1",
    "/\uff0e\uff0e/dir1",
    "/a\u2215b",
    "/a\uff0fb",
    "/a\0b",
    "/a\nb",
    "/a b",
    "/$HOME",
    "/`id`",
    "/a..b",
    "/link.lnk",
    "/Link.LNK",
    "/here.url",
    "/link.symlink",
    "/a->b",
    "/" + "a" * 101,
    "/a" * 300,
]


@pytest.mark.parametrize("asked", TRICKS)
def test_what_leads_elsewhere_or_could_be_read_so_is_refused(asked: str) -> None:
    for root in ROOTS:
        with pytest.raises(Refused) as refused:
            joined(root, asked)
        assert refused.value.reason is SitesReason.PATH_REFUSED


def test_a_root_hides_what_lies_beside_it_and_a_path_is_relative_to_it() -> None:
    assert joined("/dir2", "/subdir2") == "/dir2/subdir2"
    assert joined("/dir2", "/") == "/dir2"
    assert joined("/dir2", "/dir2/subdir2") == "/dir2/dir2/subdir2", "asked so it is not there"
    assert joined("/", "/") == "/"
    assert joined("/", "/dir1/v1.2_final+x@y=z-") == "/dir1/v1.2_final+x@y=z-"


@examples(200)
@given(st.sampled_from(ROOTS), st.text(alphabet="./\\ab~%\u2024\0 -_", max_size=12))
def test_no_path_leaves_the_root(root: str, asked: str) -> None:
    try:
        found = joined(root, asked)
    except Refused:
        return
    assert posixpath.normpath(found) == found
    assert found == root or found.startswith(root.rstrip("/") + "/")


def test_each_use_of_each_store_has_a_place_of_its_own_in_the_work() -> None:
    assert place_of("input", "renders", "/a/b") == "/data/input/renders/a/b"
    assert place_of("scratch", "renders", "/") == "/data/scratch/renders"
    with pytest.raises(Refused):
        place_of("input", "renders", "/../output")

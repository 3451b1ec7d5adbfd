"""Where facts live: ids that every log depends on."""

from __future__ import annotations

from uuid import uuid5

from hypothesis import given
from hypothesis import strategies as st

from domain.stream import NAMESPACE, Stream

words = st.text(st.characters(codec="utf-8"))


@given(words, words)
def test_a_streams_id_is_the_standards_name_based_uuid(kind: str, name: str) -> None:
    """RFC 9562, version 5: anybody can derive it again."""
    assert Stream(kind, name).uuid == uuid5(NAMESPACE, f"{kind}:{name}")

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


@given(words, words)
def test_a_stream_is_a_tuple_of_its_kind_and_id_whatever_it_folds_to(kind: str, name: str) -> None:
    """So it is as fast as one, and equal streams are one key."""
    stream: Stream[int] = Stream(kind, name)
    same: Stream[str] = Stream(kind, name)
    assert type(stream) is Stream
    assert stream == same == (kind, name)
    assert hash(stream) == hash(same) == hash((kind, name))

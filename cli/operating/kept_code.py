"""The code of dataclasses, kept from one start of a server to the next.

    a class that is made with kept code  ==  the class that is made without

The standard library writes each method of a dataclass as text and compiles it, at every start anew;
for 1,400 classes that is a third of the processor time until a server answers. Python keeps the
code of modules in `__pycache__`; this keeps the code of those texts there too, by their hashes, and
under the same rules: written where the folder can be written and bytecode may be, read by the same
version of Python alone, made anew where it is not there. `python -m cli.operating.kept_code` makes
it, without what older versions left in it; where that never runs, what was not used goes when it
grew full.
"""

from __future__ import annotations

import dataclasses
import marshal
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from hashlib import blake2b, sha256
from importlib.util import MAGIC_NUMBER, cache_from_source
from itertools import accumulate, pairwise
from mmap import ACCESS_READ, mmap
from pathlib import Path
from types import CodeType
from typing import Any

FILE = Path(cache_from_source(__file__)).with_suffix(".dataclasses")
CODES_MAX = 20_000
"""About three times what a server of 2026-11-26 uses. Above it only what was used last is kept."""
HASH = 16
HEAD = len(MAGIC_NUMBER) + 32
"""Which Python wrote it, and the hash of the rest."""
Codes = dict[bytes, bytes]
"""The compiled code of each text, by the hash of the text."""


@contextmanager
def kept(file: Path = FILE) -> Generator[None, None, None]:
    """Dataclasses that are made meanwhile take their code from the file; what is new there is
    written to it. Where the standard library should not compile by `exec` any more, nothing is
    kept.
    """
    known, new, used = _Kept.open(file), Codes(), set[bytes]()

    def execute(text: str, names: dict[str, Any], made: dict[str, Any]) -> None:
        mark = blake2b(text.encode(), digest_size=HASH).digest()
        used.add(mark)
        code = known.code(mark)
        if code is None:
            code = compile(text, "<string>", "exec", dont_inherit=True)
            new[mark] = marshal.dumps(code)
        exec(code, names, made)  # noqa: S102 - the text that `dataclasses` would run

    dataclasses.exec = execute  # type: ignore[attr-defined]
    try:
        yield
    finally:
        del dataclasses.exec  # type: ignore[attr-defined]
        if new and not sys.dont_write_bytecode:
            with suppress(OSError):
                whole = {**known.all(), **new}
                if len(whole) > CODES_MAX:
                    whole = {mark: code for mark, code in whole.items() if mark in used}
                _write(file, whole)
        known.close()


class _Kept:
    """What a file holds. It is mapped and not read: each code is needed for a moment."""

    def __init__(self, mapped: mmap | None) -> None:
        self._mapped = mapped
        self._places: dict[bytes, tuple[int, int]] = {}
        if mapped is not None:
            length = int.from_bytes(mapped[HEAD : HEAD + 8], "big")
            self._begin = HEAD + 8 + length
            self._places = marshal.loads(mapped[HEAD + 8 : self._begin])  # noqa: S302 - as bytecode

    @classmethod
    def open(cls, file: Path) -> _Kept:
        """Empty where there is none, or one that another Python wrote or that is damaged."""
        try:
            with file.open("rb") as opened:
                mapped = mmap(opened.fileno(), 0, access=ACCESS_READ)
        except (OSError, ValueError):  # ValueError: it is empty
            return cls(None)
        with memoryview(mapped) as whole, whole[HEAD:] as body:
            is_ours = whole[: len(MAGIC_NUMBER)] == MAGIC_NUMBER
            is_whole = sha256(body).digest() == whole[len(MAGIC_NUMBER) : HEAD]
        return cls(mapped if is_ours and is_whole else None)

    def code(self, mark: bytes) -> CodeType | None:
        told = self._told(mark)
        found: CodeType | None = None if told is None else marshal.loads(told)  # noqa: S302
        return found

    def all(self) -> Codes:
        return {mark: self._told(mark) or b"" for mark in self._places}

    def _told(self, mark: bytes) -> bytes | None:
        place = self._places.get(mark)
        if place is None or self._mapped is None:
            return None
        with suppress(ValueError):  # it was closed meanwhile, where another thread makes a class
            return self._mapped[self._begin + place[0] : self._begin + place[1]]
        return None

    def close(self) -> None:
        if self._mapped is not None:
            self._mapped.close()


def _write(file: Path, codes: Codes) -> None:
    """Whole or not at all: a server beside this one may read it. Raises OSError."""
    ends = list(accumulate(map(len, codes.values()), initial=0))
    places = marshal.dumps(dict(zip(codes, pairwise(ends), strict=True)))
    body = b"".join([len(places).to_bytes(8, "big"), places, *codes.values()])
    part = file.with_name(f"{file.name}.{os.getpid()}")
    file.parent.mkdir(exist_ok=True)
    try:
        part.write_bytes(MAGIC_NUMBER + sha256(body).digest() + body)
        part.chmod(0o644)
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


if __name__ == "__main__":
    FILE.unlink(missing_ok=True)
    with kept():
        from api import timers

        timers.load()

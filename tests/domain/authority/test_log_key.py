"""The key of the log is replaced: in turn, by a key that was never used; old ones stay known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from domain.authority.log_key import LOG_KEYS, LogKeyRotated, RotateLogKey, rotation_text
from domain.authority.reasons import AuthorityReason
from tests.given import Scene

ORIGIN = "tallystick.example/v1/audit/log"
AT_US = 1_795_176_000_000_000
DAY_US = 86_400_000_000


def rotating(number: int, old: str, new: str, **changes: Any) -> RotateLogKey:
    command = RotateLogKey(
        number=number,
        origin=ORIGIN,
        old_key=old * 64,
        new_key=new * 64,
        until_us=AT_US + 14 * DAY_US,
        old_signature="ab" * 64,
        new_signature="cd" * 64,
        at_us=AT_US,
    )
    return replace(command, **changes)


def rotated(number: int, old: str, new: str) -> LogKeyRotated:
    told = rotating(number, old, new)
    names = ("number", "origin", "old_key", "new_key", "until_us", "at_us")
    named: dict[str, Any] = {name: getattr(told, name) for name in names}
    return LogKeyRotated(**named, old_signature="ab" * 64, new_signature="cd" * 64)


def test_the_first_rotation_names_both_keys_and_until_when_the_old_one_signs() -> None:
    Scene().when(rotating(1, "1", "2")).then((LOG_KEYS, rotated(1, "1", "2")))


def test_the_next_rotation_starts_from_the_key_of_the_last_one() -> None:
    once = Scene().given((LOG_KEYS, rotated(1, "1", "2")))
    once.when(rotating(2, "2", "3")).then((LOG_KEYS, rotated(2, "2", "3")))


@pytest.mark.parametrize(
    "command",
    [
        rotating(2, "1", "3"),
        rotating(2, "9", "3"),
        rotating(2, "2", "1"),
        rotating(2, "2", "2"),
        rotating(1, "2", "3"),
        rotating(3, "2", "3"),
        rotating(2, "2", "3", until_us=AT_US - 1),
        rotating(2, "2", "3", old_signature=None),
    ],
    ids=[
        "an old key that is no longer in force",
        "a key that was never in force",
        "back to an old key",
        "the same key",
        "a number again",
        "a number left out",
        "a time that is over",
        "a lost key that would go on signing",
    ],
)
def test_a_rotation_out_of_turn_is_refused(command: RotateLogKey) -> None:
    once = Scene().given((LOG_KEYS, rotated(1, "1", "2")))
    once.when(command).then_refused(AuthorityReason.LOG_KEY_STATE)


def test_two_keys_sign_for_ninety_days_at_most() -> None:
    latest_us = AT_US + 90 * DAY_US
    Scene().when(rotating(1, "1", "2", until_us=latest_us + 1)).then_refused(
        AuthorityReason.LOG_KEY_OVERLAP, latest_us=latest_us
    )
    told = replace(rotated(1, "1", "2"), until_us=latest_us)
    Scene().when(rotating(1, "1", "2", until_us=latest_us)).then((LOG_KEYS, told))


def test_the_text_that_is_signed_names_log_number_keys_and_time() -> None:
    assert rotation_text("o", 3, "aa", "bb", 7) == "tallystick/log-key/v1\no\n3\naa\nbb\n7\n"

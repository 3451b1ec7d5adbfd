"""Log lines: for people or machines, with what a request was and without any secret."""

from __future__ import annotations

import io
import json
import logging

import pytest

from api.telemetry import logs

LEAKS = {
    "api key": "the key ts_live_0123abcdef was refused",
    "test key": "ts_test_0123abcdef",
    "webhook secret": "whsec_0123abcdef is old",
    "card processor": "sk_live_0123abcdef",
    "database": "could not connect to postgresql://tally:0123abcdef@db/tally",
    "odd password": "postgresql://tally:it's,odd;)/0123abcdef@db/tally",
}


def written(form: str, text: str, **extra: object) -> str:
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(logs.formatter(form))
    logger = logging.Logger("api.some.file")
    logger.addHandler(handler)
    try:
        raise ValueError(text)
    except ValueError:
        logger.warning("%s", text, extra=extra, exc_info=True)
    return out.getvalue()


@pytest.mark.parametrize("form", ["console", "json"])
@pytest.mark.parametrize("what", LEAKS)
def test_no_line_holds_a_secret(form: str, what: str) -> None:
    line = written(form, LEAKS[what], authorization="Bearer 0123abcdef", account="acct_1")
    assert "0123abcdef" not in line
    assert "***" in line
    assert "acct_1" in line


def test_an_address_without_a_password_is_told_with_its_port() -> None:
    assert "http://127.0.0.1:8420, data" in written(
        "console", "serving on http://127.0.0.1:8420, data"
    )


def test_libraries_do_not_tell_the_addresses_they_send_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging, "basicConfig", lambda **_: None)
    logs.configure("json", "DEBUG")
    assert not logging.getLogger("httpx").isEnabledFor(logging.INFO)


def test_a_line_for_machines_is_one_json_object() -> None:
    line = written("json", "it went wrong", request_id="ab12", status=500)
    assert line.count("\n") == 1
    told = json.loads(line)
    assert told["event"] == "it went wrong"
    assert (told["level"], told["logger"]) == ("warning", "api.some.file")
    assert (told["request_id"], told["status"]) == ("ab12", 500)
    assert "ValueError: it went wrong" in told["exception"]


def test_a_line_for_people_has_its_fields_behind_the_text_and_the_traceback_below() -> None:
    first, *below = written("console", "it went wrong", status=500, account="acct_1").splitlines()
    assert first.endswith(" WARNING api.some.file: it went wrong account=acct_1 status=500")
    assert below[-1] == "ValueError: it went wrong"

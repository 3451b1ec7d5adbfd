"""Log lines on stderr: for people (`console`) or for machines (`json`), one line each.

no line holds a secret: values of fields that are named like one, and texts that look like one
of our keys or like a password in an address, are replaced by `***`
"""

from __future__ import annotations

import logging
import re
import sys
from functools import lru_cache
from typing import Any

from api.telemetry.structlog_alone import EventDict, Processor, ProcessorFormatter, structlog

_SECRET_FIELD = re.compile(r"authorization|cookie|password|secret|signature|token|api_key")
_SECRET_TEXT = re.compile(
    r"(ts_(?:live|test|node|exec|gov)_|whsec_|sk_(?:live|test)_)[^\s@'\",;)]+"
    r"|(://[^\s/:@]*:)\S*(?=@)"
)
_MASK = r"\1\2***"


def configure(form: str = "console", level: str = "INFO") -> None:
    """Send every line of this process to stderr, once: a second call replaces the first."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter(form))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # No line tells the place in the code, the thread or the process: they are not looked up.
    logging._srcfile = None
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    # They tell whole addresses, and those of webhooks and chats are secrets.
    for name in ("httpx", "httpcore", "urllib3"):
        logging.getLogger(name).setLevel(logging.WARNING)


def formatter(form: str) -> logging.Formatter:
    """What makes a line of a record: time (UTC), level, logger, text and the fields of `extra`."""
    before: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    after: list[Processor] = [
        ProcessorFormatter.remove_processors_meta,
        _without_colours,
        structlog.processors.format_exc_info,
        without_secrets,
    ]
    if form == "json":
        after.append(structlog.processors.JSONRenderer())
    else:
        after.append(_line)
    return ProcessorFormatter(foreign_pre_chain=before, processors=after)


def without_secrets(_logger: Any, _name: str, event: EventDict) -> EventDict:
    """The same event without secrets."""
    return {name: "***" if _is_secret(name) else _masked(value) for name, value in event.items()}


@lru_cache(maxsize=1_024)
def _is_secret(name: str) -> bool:
    return _SECRET_FIELD.search(name) is not None


def _without_colours(_logger: Any, _name: str, event: EventDict) -> EventDict:
    """uvicorn tells its texts a second time, for terminals."""
    event.pop("color_message", None)
    return event


def _masked(value: Any) -> Any:
    return _SECRET_TEXT.sub(_MASK, value) if isinstance(value, str) else value


def _line(_logger: Any, _name: str, event: EventDict) -> str:
    """Time, level, logger, text, then the other fields by name; a traceback below."""
    head = f"{event.pop('timestamp')} {event.pop('level').upper()} {event.pop('logger')}:"
    text, trace = event.pop("event"), event.pop("exception", None)
    told = " ".join([head, text, *(f"{name}={value}" for name, value in sorted(event.items()))])
    return told if trace is None else f"{told}\n{trace}"

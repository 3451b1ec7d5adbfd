"""Traces for an OpenTelemetry collector, where `otlp_url` names one; else nothing is made.

One span for each request and one for each round of a timer, sent by OpenTelemetry's own exporter
(OTLP over HTTP, protobuf) from a thread of its own: a collector that is away delays nobody and
loses the oldest spans first.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from opentelemetry import trace
from opentelemetry.trace import INVALID_SPAN, Span, SpanKind, Status, StatusCode

INSTALL = "otlp_url is set, and the extra `otel` is not installed: pip install 'tallystick[otel]'"


_NO_SPAN = nullcontext(INVALID_SPAN)


class ExporterMissing(Exception):
    """Traces are asked for, and the library that sends them is not installed."""


class Traces:
    """Makes spans; without an address they cost nothing and go nowhere."""

    def __init__(self, otlp_url: str | None = None) -> None:
        self._provider = None if otlp_url is None else _provider(otlp_url)
        self._tracer = (self._provider or trace.NoOpTracerProvider()).get_tracer("tallystick")

    def request(self, method: str) -> AbstractContextManager[Span]:
        """The span of one request; its name and status are set when they are known."""
        if self._provider is None:
            return _NO_SPAN
        return self._tracer.start_as_current_span(
            method, kind=SpanKind.SERVER, record_exception=False, set_status_on_exception=False
        )

    @contextmanager
    def timer(self, name: str) -> Generator[Span, None, None]:
        """The span of one round of a timer; of an error that ends it the kind: its text may name a
        party.
        """
        with self._tracer.start_as_current_span(
            f"timer {name}", record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield span
            except Exception as error:
                span.set_status(Status(StatusCode.ERROR, type(error).__name__))
                raise

    def close(self) -> None:
        """Send what is left, for 5 seconds at most."""
        if self._provider is not None:
            self._provider.force_flush(5_000)
            self._provider.shutdown()


def _provider(otlp_url: str) -> Any:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise ExporterMissing(INSTALL) from error
    provider = TracerProvider(
        resource=Resource.create({"service.name": "tallystick"}), shutdown_on_exit=False
    )
    exporter = OTLPSpanExporter(endpoint=otlp_url.rstrip("/") + "/v1/traces", timeout=5)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider

"""Which usage fee a model pays; an unknown one is listed and not guessed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.hardware.classes import (
    ACCELERATOR,
    DATACENTER,
    DEVELOPMENT,
    PROFESSIONAL,
    REGISTRY,
    SOFTWARE,
    UNIFIED,
    ModelRow,
    class_of,
    words_of,
)

HARDWARE_CLASSES = (DEVELOPMENT, PROFESSIONAL, DATACENTER, ACCELERATOR, UNIFIED, SOFTWARE)

NOW_US = 1_767_268_800_000_000


@pytest.mark.parametrize(
    ("model", "gpu_class"),
    [
        ("NVIDIA GeForce RTX 4090", DEVELOPMENT),
        ("NVIDIA GeForce GTX 1080 Ti", DEVELOPMENT),
        ("RTX 3090", DEVELOPMENT),
        ("AMD Radeon RX 7900 XTX", DEVELOPMENT),
        ("NVIDIA RTX A6000", PROFESSIONAL),
        ("Quadro RTX 6000", PROFESSIONAL),
        ("NVIDIA RTX 6000 Ada Generation", PROFESSIONAL),
        ("AMD Radeon Pro W7900", PROFESSIONAL),
        ("Tesla V100-SXM2-32GB", DATACENTER),
        ("NVIDIA A100-SXM4-80GB", DATACENTER),
        ("NVIDIA H100 80GB HBM3", DATACENTER),
        ("NVIDIA H200", DATACENTER),
        ("Radeon Instinct MI50", DATACENTER),
        ("AMD Instinct MI300X", DATACENTER),
        ("V100M16", DATACENTER),
        ("T4", DATACENTER),
    ],
)
def test_a_known_model_has_its_class(model: str, gpu_class: str) -> None:
    assert class_of(model, NOW_US) == gpu_class


@pytest.mark.parametrize(
    "model", ["", "Quantum One", "A1000", "H1000", "RTX 9999", "NVIDIA", "T40", "GeForce Tesla"]
)
def test_an_unknown_or_ambiguous_model_has_none(model: str) -> None:
    assert class_of(model, NOW_US) is None


def test_words_are_letters_and_digits() -> None:
    assert words_of("NVIDIA A100-SXM4-80GB") == ("NVIDIA", "A100", "SXM4", "80GB")


def test_a_row_counts_from_its_date_on() -> None:
    rows = (ModelRow(("T4",), DATACENTER), ModelRow(("T4",), PROFESSIONAL, from_us=NOW_US))
    for registry in (rows, rows[::-1]):
        assert class_of("Tesla T4", NOW_US - 1, registry) == DATACENTER
        assert class_of("Tesla T4", NOW_US, registry) == PROFESSIONAL


def test_every_row_can_match_and_names_a_known_class() -> None:
    for row in REGISTRY:
        assert row.gpu_class in HARDWARE_CLASSES
        assert class_of(" ".join(row.words), NOW_US) == row.gpu_class


@given(st.text())
def test_any_name_has_a_known_class_or_none(model: str) -> None:
    assert class_of(model, NOW_US) in (*HARDWARE_CLASSES, None)
    assert class_of(model.lower(), NOW_US) in (*HARDWARE_CLASSES, None)

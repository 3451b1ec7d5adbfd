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
    ("vendor", "model", "gpu_class"),
    [
        ("nvidia", "NVIDIA GeForce RTX 4090", DEVELOPMENT),
        ("nvidia", "NVIDIA GeForce GTX 1080 Ti", DEVELOPMENT),
        ("nvidia", "RTX 3090", DEVELOPMENT),
        ("amd", "AMD Radeon RX 7900 XTX", DEVELOPMENT),
        ("nvidia", "NVIDIA RTX A6000", PROFESSIONAL),
        ("nvidia", "Quadro RTX 6000", PROFESSIONAL),
        ("nvidia", "NVIDIA RTX 6000 Ada Generation", PROFESSIONAL),
        ("amd", "AMD Radeon Pro W7900", PROFESSIONAL),
        ("nvidia", "Tesla V100-SXM2-32GB", DATACENTER),
        ("nvidia", "NVIDIA A100-SXM4-80GB", DATACENTER),
        ("nvidia", "NVIDIA H100 80GB HBM3", DATACENTER),
        ("NVIDIA", "NVIDIA H200", DATACENTER),
        ("amd", "Radeon Instinct MI50", DATACENTER),
        ("amd", "AMD Instinct MI300X", DATACENTER),
        ("intel", "Intel(R) Data Center GPU Max 1550", DATACENTER),
        ("intel", "Intel(R) Arc(TM) A770 Graphics", DEVELOPMENT),
        ("nvidia", "T4", DATACENTER),
    ],
)
def test_a_known_model_has_its_class(vendor: str, model: str, gpu_class: str) -> None:
    assert class_of(vendor, model, NOW_US) == gpu_class


NAMES_NOBODY_KNOWS = (
    *("", "Quantum One", "A1000", "H1000", "RTX 9999", "NVIDIA", "T40", "GeForce Tesla"),
    *("Acme G2", "Quantum A2", "Toaster T4", "G2", "G3", "V100M16", "Acme Tesla T4"),
)


@pytest.mark.parametrize("model", NAMES_NOBODY_KNOWS)
@pytest.mark.parametrize("vendor", ["nvidia", "amd", "acme", ""])
def test_an_unknown_or_ambiguous_model_has_none(vendor: str, model: str) -> None:
    """C-19: listed, not guessed. Words of known models in a name of another maker mean nothing."""
    assert class_of(vendor, model, NOW_US) is None


@pytest.mark.parametrize(
    ("vendor", "model"), [("amd", "NVIDIA A100"), ("acme", "Tesla T4"), ("nvidia", "Instinct MI50")]
)
def test_a_model_counts_for_its_own_maker_alone(vendor: str, model: str) -> None:
    assert class_of(vendor, model, NOW_US) is None


def test_words_are_letters_and_digits() -> None:
    assert words_of("NVIDIA A100-SXM4-80GB") == ("NVIDIA", "A100", "SXM4", "80GB")


def test_a_row_counts_from_its_date_on() -> None:
    rows = (
        ModelRow("nvidia", ("T4",), DATACENTER),
        ModelRow("nvidia", ("T4",), PROFESSIONAL, from_us=NOW_US),
    )
    for registry in (rows, rows[::-1]):
        assert class_of("nvidia", "NVIDIA T4", NOW_US - 1, registry) == DATACENTER
        assert class_of("nvidia", "NVIDIA T4", NOW_US, registry) == PROFESSIONAL


def test_every_row_can_match_and_names_a_known_class() -> None:
    for row in REGISTRY:
        assert row.gpu_class in HARDWARE_CLASSES
        assert class_of(row.vendor, " ".join(row.words), NOW_US) == row.gpu_class


@given(st.sampled_from(["nvidia", "amd", "intel"]), st.text())
def test_any_name_has_a_known_class_or_none(vendor: str, model: str) -> None:
    assert class_of(vendor, model, NOW_US) in (*HARDWARE_CLASSES, None)
    assert class_of(vendor, model.lower(), NOW_US) in (*HARDWARE_CLASSES, None)


def test_a_simulated_device_is_classed_as_the_board_that_it_names() -> None:
    assert class_of("sim", "NVIDIA H200", 0) == "datacenter"
    assert class_of("sim", "Acme G2", 0) is None
    assert class_of("sim", "H200", 0) is None

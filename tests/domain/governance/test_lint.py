"""The lint of proposals: what was published and wrong is found by name; what is sound passes."""

from __future__ import annotations

import copy
import json
import tomllib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.authority.acts import LIMITS
from domain.authority.vote import content_text
from domain.governance.document import Tier, read_document
from domain.governance.formula import read_formula
from domain.governance.lint import ERROR, RULES, WARNING, Report, lint
from domain.governance.splitting import best_split, earned_ppm
from domain.money import PPM
from tests.examples import examples

POLICIES = Path(__file__).parents[2] / "policies"


def document(name: str) -> dict[str, Any]:
    return tomllib.loads((POLICIES / f"{name}.toml").read_text(encoding="utf-8"))


CLEAN = document("clean")


def changed(place: str, value: Any) -> dict[str, Any]:
    """The clean document with one value changed, named like `terms.hard_cap` or `splits.0.name`."""
    made: Any = copy.deepcopy(CLEAN)
    *path, last = [int(part) if part.isdigit() else part for part in place.split(".")]
    inner = made
    for part in path:
        inner = inner[part]
    inner[last] = value
    return made  # type: ignore[no-any-return]


def rules(report: Report) -> list[str]:
    return [one.rule for one in report.findings]


def test_a_clean_policy_passes() -> None:
    report = lint(CLEAN)
    assert (report.findings, report.passes) == ((), True)


@pytest.mark.parametrize(
    ("name", "found", "told"),
    [
        ("rnp_005", ["milestones_whole"], ["900000"]),
        (
            "rnp_006",
            [
                "halves_never_round_up",
                "parts_within_available",
                "epochs_within_month",
                "epochs_within_month",
                "epochs_within_month",
                "epochs_within_month",
                "inputs_are_facts",
            ],
            [
                "1 more than 760567",
                "12 times a part, 6 too much",
                "191414 is more than 190141",
                "43758, 47435, 47535",
                "47535 x 5 epochs = 237675",
                "r_i is an input in USD and a result in TOKEN",
            ],
        ),
        ("rnp_013", ["flat_node_cap"], ["500 units", "1000 units"]),
        (
            "rnp_015",
            ["penalty_never_falls"] * 4 + ["no_float", "no_logarithm"],
            ["4 nodes get 2088184 ppm", "3 get 3000000", "log is no integer arithmetic"],
        ),
        (
            "rnp_019",
            ["weights_sum", "no_intermediate_rounding"],
            ["970000 ppm", "478988 / 100000", "476000 / 100000"],
        ),
    ],
)
def test_every_published_slip_is_found_by_its_rule(
    name: str, found: list[str], told: list[str]
) -> None:
    report = lint(document(name))
    assert rules(report) == found
    messages = " ".join(one.message for one in report.findings)
    for part in told[1:] if name == "rnp_013" else told:
        assert part in messages, (part, messages)
    assert report.passes == (name == "rnp_013")


@pytest.mark.parametrize(
    ("place", "value", "rule"),
    [
        ("terms.compute_ppm", 650_001, "weights_sum"),
        ("terms.hard_cap", "500557999999999", "totals_within_cap"),
        ("terms.segments.1.start_epoch", 52, "segments_overlap"),
        ("terms.compute_base", "hope", "terms_invalid"),
        ("terms.compute_base", "gpu_time", "weight_costs"),
        ("terms.governance.approvals", 1, "terms_invalid"),
        ("terms.governance.alone", {**asdict(LIMITS), "goodwill": 0}, "terms_invalid"),
        ("terms.epoch_length_seconds", 0, "terms_invalid"),
        ("milestones.0.remainder_ppm", 0, "milestones_whole"),
        ("splits.0.cap_multiple_ppm", 1_000_002, "cap_multiple"),
        ("splits.1.burn_ppm", 400_001, "cap_multiple"),
        ("terms.rewards.cap_multiple_ppm", 1_000_002, "cap_multiple"),
        ("terms.rewards.bonus_max_ppm", 1_000_001, "bonus_bounded"),
        ("terms.rewards.cap_goes_to", "me", "terms_invalid"),
        ("terms.rewards.availability_cap_per_node", 10, "flat_node_cap"),
        ("terms.rewards.availability_tier_2_ppm", 500_001, "terms_invalid"),
        ("terms.rewards.availability_min_tier", 2, "terms_invalid"),
        ("bonuses.0.at_most_ppm", 2_000_001, "bonus_bounded"),
        ("node_rewards.0.flat", 1, "splitting_gains_nothing"),
        ("node_rewards.0.tiers.1.ppm", 999_999, "splitting_gains_nothing"),
        ("node_rewards.0.cap", 1, "flat_node_cap"),
        ("penalties.0.multipliers.1.ppm", 499_999, "penalty_never_falls"),
        ("formulas.0.expression", "burned * bonus_ppm * 2.5", "no_float"),
        ("formulas.0.expression", "burned ** bonus_ppm", "no_logarithm"),
        ("formulas.0.expression", "burned * sqrt(bonus_ppm)", "no_logarithm"),
        ("formulas.0.expression", "burned * hope", "formula_unreadable"),
        ("formulas.0.expression", "burned * (bonus_ppm", "formula_unreadable"),
        ("formulas.0.expression", "floor(burned / 3) * bonus_ppm", "no_intermediate_rounding"),
        ("formulas.0.expression", "burned // 3 * bonus_ppm", "no_intermediate_rounding"),
        ("formulas.1.inputs.1.source", "fact", "inputs_are_facts"),
        ("formulas.1.inputs.1.unit", "TOKEN", "inputs_are_facts"),
        ("formulas.0.output", "reward", "inputs_are_facts"),
        ("weights.0.parts.0.ppm", 700_000.0, "no_float"),
        ("proposal.created", "23-10-2023", "form"),
        ("proposal.number", 0, "form"),
        ("proposal.nubmer", 1, "form"),
        ("periods.0.per_epoch", "38028", "form"),
        ("budgets.0.available", -1, "form"),
        ("format", "tallystick-policy-v2", "form"),
    ],
)
def test_one_wrong_value_is_found_by_its_rule(place: str, value: Any, rule: str) -> None:
    found = lint(changed(place, value)).findings
    assert rule in {one.rule for one in found}, found
    wanted = WARNING if rule == "flat_node_cap" else ERROR
    assert {one.severity for one in found if one.rule == rule} == {wanted}


@pytest.mark.parametrize(("least", "passes"), [(None, False), (9_999, False), (10_000, True)])
def test_a_weight_by_time_passes_where_a_gpu_hour_costs_a_cent(
    least: int | None, passes: bool
) -> None:
    by_time = changed("terms.compute_base", "gpu_time")
    if least is not None:
        by_time["terms"]["rewards"]["burned_per_gpu_hour"] = least
    report = lint(by_time)
    assert (report.passes, rules(report)) == (passes, [] if passes else ["weight_costs"])


def test_a_bonus_without_a_bound_and_a_cap_of_nothing_are_found() -> None:
    unbounded = copy.deepcopy(CLEAN)
    del unbounded["bonuses"][0]["at_most_ppm"]
    assert rules(lint(unbounded)) == ["bonus_bounded"]
    uncapped = copy.deepcopy(CLEAN)
    del uncapped["terms"]["rewards"]["cap_multiple_ppm"]
    assert rules(lint(uncapped)) == ["cap_multiple"]
    del uncapped["terms"]["rewards"]
    silent = lint(uncapped)
    assert (rules(silent), silent.passes) == (["rewards_missing"], False)


def test_e_h8_what_passed_the_lint_and_let_a_washer_gain_is_an_error() -> None:
    """E-H8: no [[splits]], a multiple of 100, a client that is not counted, weight for money that
    is not paid for good; and a split's own multiple below that of the terms.
    """
    unjudged = {name: table for name, table in CLEAN.items() if name != "splits"}
    (found,) = lint(unjudged).findings
    assert (found.rule, found.severity, found.field) == ("cap_multiple", ERROR, "splits")
    hundred = changed("terms.rewards.cap_multiple_ppm", 100_000_000)
    del hundred["splits"]
    assert [(one.severity, one.field) for one in lint(hundred).findings] == [
        (ERROR, "terms.rewards.cap_multiple_ppm"),
        (ERROR, "splits"),
    ]
    uncounted = changed("splits.0.platform_ppm", 0)
    (found,) = lint(uncounted).findings
    assert (found.rule, found.severity, found.field) == ("cap_multiple", ERROR, "splits[0]")
    assert "1000000 ppm of what is spent come back" in found.message
    assert "50000 of it the client's" in found.message
    assert not lint(changed("splits.0.cap_multiple_ppm", 1)).findings
    assert rules(lint(changed("splits.0.refund_ppm", 1))) == ["cap_multiple"]
    names = ["burned", "cash", "card", "earned", "grant.spring"]
    weights = [{"name": name, "ppm": 1_000_000} for name in names]
    found_all = lint(changed("terms.rewards.source_weights", weights)).findings
    assert [(one.rule, one.severity) for one in found_all] == [("source_weights", ERROR)] * 3
    bought = {"name": "bought credits", "provider_ppm": 0, "burn_ppm": PPM}
    (found,) = lint({**CLEAN, "splits": [bought]}).findings
    assert "1000000 ppm of what is spent come back" in found.message
    lower = changed("terms.rewards.cap_multiple_ppm", 950_000)
    assert not lint({**lower, "splits": [bought]}).findings


def test_the_tables_of_what_providers_and_burns_get_back_end_at_ninety_five_percent() -> None:
    """SCE and SGS of RNP-023 are exactly there; a multiple above 1 is not."""
    assert not lint(CLEAN).findings
    (found,) = lint(changed("splits.0.cap_multiple_ppm", 1_100_000)).findings
    assert "1010000 ppm of what is spent come back" in found.message


@pytest.mark.parametrize("plain", [None, [], "policy", {}, {"format": 1}, {"proposal": []}])
def test_what_is_no_document_is_a_finding_and_no_crash(plain: Any) -> None:
    assert set(rules(lint(plain))) == {"form"}


def test_the_same_document_has_the_same_hash_in_any_order_and_form() -> None:
    turned = dict(reversed(CLEAN.items()))
    assert content_text(turned) == content_text(CLEAN)
    again = json.loads(content_text(document("rnp_006")))
    assert lint(again).sha256 == lint(document("rnp_006")).sha256
    assert lint(again).sha256 != lint(CLEAN).sha256


def test_every_rule_has_a_sentence() -> None:
    assert all(len(sentence) > 10 for sentence in RULES.values())


tiers_of = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 5)),
    min_size=1,
    max_size=4,
    unique_by=lambda t: t[0],
).map(lambda pairs: tuple(Tier(start, rate * PPM // 2) for start, rate in sorted(pairs)))
caps = st.none() | st.integers(0, 25)


@examples(60)
@given(tiers_of, st.integers(0, 1), caps, st.lists(st.integers(0, 30), min_size=2, max_size=5))
def test_what_the_search_calls_sound_no_split_into_k_identities_gains(
    tiers: tuple[Tier, ...], flat: int, cap: int | None, parts: list[int]
) -> None:
    whole = earned_ppm(sum(parts), tiers, flat, cap)
    apart = sum(earned_ppm(part, tiers, flat, cap) for part in parts)
    if apart > whole:
        assert best_split(tiers, flat, cap) is not None


@examples(40)
@given(tiers_of, st.integers(0, 1), caps)
def test_the_search_finds_what_trying_everything_finds(
    tiers: tuple[Tier, ...], flat: int, cap: int | None
) -> None:
    def gain(one: int, other: int) -> int:
        apart = earned_ppm(one, tiers, flat, cap) + earned_ppm(other, tiers, flat, cap)
        return apart - earned_ppm(one + other, tiers, flat, cap)

    most = max(gain(one, other) for one in range(1, 40) for other in range(one, 40))
    found = best_split(tiers, flat, cap)
    if found is None:
        assert most <= 0
    else:
        assert gain(found.one, found.other) == found.apart - found.together > 0
        assert found.apart - found.together >= most


@given(st.text(max_size=60))
def test_any_text_can_be_read_as_a_formula(expression: str) -> None:
    found = read_formula(expression)
    assert not (found.unreadable and found.names)


numbers = st.integers(-5, 2**70) | st.floats() | st.text(max_size=5) | st.none()
plains = st.recursive(
    numbers,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*CLEAN, "name", "parts", "ppm"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@examples(50)
@given(st.sampled_from([name for name in CLEAN if name != "format"]), plains)
def test_no_document_breaks_the_lint(table: str, plain: Any) -> None:
    report = lint({**CLEAN, table: plain})
    assert report.passes == (report.errors == 0)
    known, faults = read_document({**CLEAN, table: plain})
    assert (known is None) == bool(faults)


def test_tiers_are_counted_exactly() -> None:
    tiers = (Tier(0, 1), Tier(10, 3))
    assert [earned_ppm(work, tiers, 2, None) for work in (0, 1, 10, 12)] == [
        0,
        2 * PPM + 1,
        2 * PPM + 10,
        2 * PPM + 16,
    ]
    assert earned_ppm(12, tiers, 2, 1) == PPM

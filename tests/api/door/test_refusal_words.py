"""Every refusal has its own sentence, which can be said with the facts its raises give, in the
units of people; and the sentence names commands that exist.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from api.door import errors
from api.refusals.sentence import KINDS, Case
from api.refusals.words import SENTENCES
from domain.chain.reasons import ChainReason
from domain.funds.reasons import FundsReason
from domain.hardware.reasons import HardwareReason
from domain.income.reasons import IncomeReason
from domain.market.dimensions import DIMENSIONS
from domain.market.explanation import FIELDS
from domain.market.reasons import MarketReason
from domain.pools.reasons import PoolsReason
from domain.prices.reasons import PricesReason
from domain.reasons import REASONS, reason_of
from domain.refusal import Reason, Refused

HOUSE = Path(__file__).parents[3]
MACHINE_WORDS = re.compile(r"\bppm\b|_ppm\b|_us\b|_mib\b|micro-|dimension=|[{}\[\]]|=None")
VAGUE = re.compile(r"\b(who|whoever|nobody|somebody)\b", re.IGNORECASE)
MOMENT_US = 1_795_932_120_000_000


TEXTS = frozenset({"text", "word", "field", "rule"})


def _given(node: ast.expr, name: str, is_text: bool) -> str:
    """What a raise gives: its constant, else a value of the fact's kind."""
    if isinstance(node, ast.Constant) and node.value is not None:
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        parts = [one.value if isinstance(one, ast.Constant) else "7" for one in node.values]
        return "".join(map(str, parts))
    if is_text:
        return f"{name}_1" if name.endswith("_id") else "a_word"
    return str(MOMENT_US if name.endswith("_us") else 1_234_500)


def _texts(reason: Reason) -> set[str]:
    """The facts that the sentences of a reason show as words, or not at all."""
    used = [one for case in _cases(reason) for one in case.uses]
    return {name for name, kind in used if kind in TEXTS}


def _cases(reason: Reason) -> tuple[Case, ...]:
    return (*SENTENCES[reason].cases, *SENTENCES[reason].advice)


@cache
def raised() -> tuple[tuple[Reason, str, dict[str, str]], ...]:
    """Every `Refused(Reason.X, fact=...)` of the house: its reason, its place, its facts."""
    return tuple(_raised())


def _raised() -> Iterator[tuple[Reason, str, dict[str, str]]]:
    for room in ("domain", "api", "ledger", "contracts"):
        for path in sorted((HOUSE / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if not isinstance(node, ast.Call) or not node.args:
                    continue
                if not isinstance(node.func, ast.Name) or node.func.id != "Refused":
                    continue
                place = f"{path.relative_to(HOUSE)}:{node.lineno}"
                named = {one.arg: one.value for one in node.keywords if one.arg}
                for name in re.findall(r"Reason\.([A-Z_]+)", ast.unparse(node.args[0])):
                    texts = _texts(reason_of(name.lower()))
                    given = {n: _given(v, n, n in texts) for n, v in named.items()}
                    yield reason_of(name.lower()), place, given


def test_every_reason_has_a_sentence_of_its_own() -> None:
    assert SENTENCES.keys() == set(REASONS.values())
    said = [SENTENCES[reason].said({}) for reason in REASONS.values()]
    doubled = {one for one in said if said.count(one) > 1}
    shared = [reason for reason in REASONS.values() if SENTENCES[reason].said({}) in doubled]
    assert shared == [PricesReason.ZERO_AMOUNT] or not shared, shared


def test_the_last_case_of_a_reason_needs_no_fact() -> None:
    for reason in REASONS.values():
        last = SENTENCES[reason].cases[-1]
        assert not last.where, reason
        assert not last.needs, reason
        assert last.said({}).endswith("."), reason


def test_the_house_raises_what_it_should() -> None:
    assert len(raised()) > 500, "the walk finds the raises"


def test_each_raise_is_told_in_units_of_people() -> None:
    wrong = []
    for reason, place, facts in raised():
        told = errors.of_refusal(Refused(reason, **facts)).detail
        is_machine = MACHINE_WORDS.search(told) or "1234500" in told or str(MOMENT_US) in told
        if is_machine or not told.endswith("."):
            wrong.append((place, told))
    assert not wrong


def test_no_quantity_is_shown_as_it_is_stored() -> None:
    used = {one for reason in REASONS.values() for case in _cases(reason) for one in case.uses}
    stored = re.compile(r"(_us|_ppm|_mib|_units|^units|price|limit|fee|amount)$")
    assert not {one for one in used if stored.search(one[0]) and one[1] in {*TEXTS, "count"}}


def test_a_fact_that_a_sentence_uses_is_given_by_a_raise() -> None:
    """A placeholder that no raise gives is a slip of the pen: the sentence would never be said."""
    slips = {}
    for reason in REASONS.values():
        given = {name for one, _, facts in raised() if one is reason for name in facts}
        used = {name for case in _cases(reason) for name, _ in case.uses}
        used |= {name for case in _cases(reason) for name in case.where}
        if used - given != GIVEN_WITH_STARS.get(reason, set()):
            slips[reason] = used - given
    assert not slips


GIVEN_WITH_STARS = {
    ChainReason.CHAIN_TX_STATE: {"intent_id", "status"},
    HardwareReason.DEVICE_TAKEN: {"mig_profile"},
    MarketReason.NO_MATCH: {"ease", "ease_to", "ease_nodes"},
    FundsReason.PAYMENT_STATE: {"takings"},
    FundsReason.PAYMENT_TERMS_INVALID: {"least", "most"},
    PoolsReason.POOL_POLICY_INVALID: {"least", "most"},
    FundsReason.TOP_UP_INVALID: {"least", "most"},
}
"""Facts that a raise gives as `**facts`."""


def test_no_sentence_uses_machine_words_or_vague_words() -> None:
    for reason in REASONS.values():
        for case in _cases(reason):
            plain = re.sub(r"\{[a-z_0-9]+:[a-z_]+\}", "X", case.template)
            assert not re.search(r"\bppm\b|_us\b|_ppm\b|micro-", plain), (reason, plain)
            assert not VAGUE.search(plain), (reason, plain)
            assert plain.count("[") == plain.count("]"), (reason, plain)


def test_no_sentence_sends_its_reader_away_without_a_step() -> None:
    """words.md, rule 6: the next step that works. "Correct it" and "see there" are none."""
    empty = re.compile(
        r"Correct (it|its \w+|the (numbers?|days?|rate|case|fee|times?|amount|state))\.$"
        r"|description (lists|allows|says)|Send fewer\.$|this way\. Choose"
    )
    found = [
        (reason, case.template)
        for reason in REASONS.values()
        for case in _cases(reason)
        if empty.search(case.template)
    ]
    assert not found


def test_no_sentence_repeats_the_title() -> None:
    for reason in REASONS.values():
        title = errors.title_of(reason.value)
        for case in _cases(reason):
            assert not case.template.startswith((f"{title}:", f"{title}.")), (reason, case.template)


def test_every_kind_of_fact_is_known_and_used() -> None:
    used = {kind for reason in REASONS.values() for case in _cases(reason) for _, kind in case.uses}
    assert used == KINDS.keys()


def test_every_command_that_a_sentence_names_exists() -> None:
    from cli.index import COMMANDS
    from cli.main import opened

    told = [case.template for reason in REASONS.values() for case in _cases(reason)]
    named = {one for text in told for one in re.findall(r"`tallystick ([^`]*)`", text)}
    assert len(named) > 50
    for words in named:
        first, *rest = words.split()
        assert first in COMMANDS, words
        found = opened(first)
        for word in rest:
            if word.startswith("-") or word.isupper() or not hasattr(found, "commands"):
                break
            assert word in found.commands, words
            found = found.commands[word]
        options = {name for one in found.params for name in getattr(one, "opts", ())} | {"--help"}
        assert {one for one in words.split() if one.startswith("--")} <= options, words


def test_every_dimension_of_a_match_has_its_sentence() -> None:
    cases = SENTENCES[MarketReason.NO_MATCH].cases
    told = {case.where["dimension"] for case in cases if "dimension" in case.where}
    assert told == {dimension.name for dimension in DIMENSIONS}
    lasting = {dimension.name for dimension in DIMENSIONS if dimension.is_lasting}
    impossible = {
        case.where.get("dimension") for case in SENTENCES[MarketReason.MATCH_IMPOSSIBLE].cases
    }
    assert impossible == lasting | {None}
    eased = {case.where["ease"] for case in SENTENCES[MarketReason.NO_MATCH].advice}
    assert eased <= {*FIELDS, "gpu_count", "share_ppm", "mode", "mig_profile", "term_seconds"}


def _told(reason: Reason, **facts: object) -> str:
    return errors.of_refusal(Refused(reason, **facts)).detail


def test_a_purse_that_is_too_small_says_how_much_is_needed_and_where_to_buy() -> None:
    assert _told(FundsReason.CREDIT_TOO_LOW, needed=1_000_000_000, available=25_000_000) == (
        "This needs 1,000.00 CREDIT; 25.00 are available. Buy credits with"
        " `tallystick payment create`, or ask for less: a lower price limit, a shorter term or"
        " fewer GPUs."
    )


def test_too_little_for_an_hour_names_the_funds_to_give() -> None:
    told = _told(FundsReason.CREDIT_TOO_LOW, needed=2_500_000, available=1_000, what="funds")
    assert told.startswith("The funds of this lease must be at least 2.50 CREDIT")
    assert told.endswith("Raise `--funds` to 2.50.")


def test_busy_gpus_say_that_a_lease_has_to_end() -> None:
    busy = {"dimension": "free", "required": 1, "best_offered": 0, "missing": "room", "matching": 3}
    assert _told(MarketReason.NO_MATCH, **busy).startswith(
        "All matching GPUs (3 nodes) are busy now, and the end of their leases is not known."
    )
    assert _told(MarketReason.NO_MATCH, **busy, free_us=MOMENT_US).startswith(
        "All matching GPUs (3 nodes) are busy now. The next is free by 2026-11-29 06:02 UTC, unless"
    )


def test_a_price_limit_that_is_too_low_says_what_to_raise_it_to() -> None:
    told = _told(
        MarketReason.NO_MATCH,
        dimension="price",
        required="1000000",
        best_offered="2500000",
        nodes=1,
        matching=1,
    )
    assert told == (
        "The cheapest matching GPU costs 2.50 CREDIT per hour; your limit is 1.00."
        " Raise `--max-price` to 2.50."
    )


def test_a_new_destination_says_from_when_money_can_leave() -> None:
    held = {"account_id": "acct_1", "holds": "destination: the destination is new"}
    told = _told(IncomeReason.CASH_OUT_HELD, **held, until_us=MOMENT_US)
    assert told.startswith(
        "Cash-outs to this new destination are possible from 2026-11-29 06:02 UTC."
    )


def test_the_facts_of_a_problem_stay_as_they_are() -> None:
    problem = errors.of_refusal(
        Refused(FundsReason.CREDIT_TOO_LOW, needed=5, available=1, bank=None)
    )
    assert problem.facts == {"needed": "5", "available": "1"}


@pytest.mark.parametrize(
    ("kind", "raw", "told"),
    [
        ("credit", "0", "0.00 CREDIT"),
        ("credit", "-2500001", "-2.500001 CREDIT"),
        ("amount", "1234500000", "1,234.50"),
        ("token", "150000000", "1.50 TOKEN"),
        ("usd", "40", "0.00004 USD"),
        ("percent", "125000", "12.5 %"),
        ("percent", "1", "0.0001 %"),
        ("gpus_of", "1500000", "1.5 GPUs"),
        ("gpus", "1", "1 GPU"),
        ("gib", "81920", "80 GiB"),
        ("span", "5400000000", "90 minutes"),
        ("span", "259200000000", "3 days"),
        ("span", "1", "0.000001 seconds"),
        ("time", "0", "1970-01-01 00:00 UTC"),
        ("time", "1", "1970-01-01 00:00:01 UTC"),
        ("day", "20000", "2024-10-04"),
        ("gpu_hours", "9000000000", "2.50 GPU-hours"),
        ("text", "('a', 'b')", "a, b"),
        ("text", "x" * 300, "x" * 200 + "..."),
        ("text", "a\x1b[2J", "a?[2J"),
        ("word", "time_slice", "time slice"),
        ("credit", "not a number", "not a number"),
    ],
)
def test_a_fact_is_written_as_people_write_it(kind: str, raw: str, told: str) -> None:
    assert KINDS[kind](raw) == told

"""The epoch file: a settlement, input and result, as canonical bytes that anybody can recompute.

    bytes == JSON with sorted keys, no spaces, units and times as decimal strings
    settle(what the file says went in) == what the file says came out

Its SHA-256 is in `EpochSealed`, goes on chain with the mint and the payout root, and is what an
auditor starts from. Nodes and accounts are in order of their ids; a node is
`[id, account, [[source, burned, gpu_us]], burned_tokens, score_ppm, devices, bought_tokens]` and
each of its devices `[class, tier, gpu_us, promised_us]`. The policy's numbers are in the file too:
it needs nothing else to be checked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from hashlib import sha256
from itertools import chain, repeat
from typing import Any

from domain.epochs.emission import EmissionSegment
from domain.epochs.policy import PolicyPublished
from domain.epochs.reward_terms import Rated, RewardTerms
from domain.epochs.settlement import Attested, Cut, NodeCut, Openings, Outcome, Settlement, Use
from domain.money import Amount, Asset
from domain.nesting import read_json

EPOCH_FORMAT = "tallystick-epoch-v4"
ROWS_AT_ONCE = 1_000
_json = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode
_WIDE = (
    "availability_cap_per_gpu_hour",
    "availability_cap_per_node",
    "burned_per_gpu_hour",
    "owner_cap",
    "release_cap",
)


def epoch_file(settlement: Settlement) -> bytes:
    """The canonical bytes of a settlement."""
    return b"".join(file_of(settlement, node_texts(settlement.cut.nodes)))


def file_of(settled: Outcome, nodes: Iterable[str]) -> Iterator[bytes]:
    """The canonical bytes of an outcome, piece by piece. `nodes`: by id, one or several to a text,
    as `node_texts` writes them.
    """
    s, cut = settled, settled.cut
    document = {
        "format": EPOCH_FORMAT,
        "epoch": cut.epoch,
        "cut_position": str(cut.cut_position),
        "policy": policy_document(cut.policy),
        "openings": {
            "unissued": str(cut.openings.unissued),
            "recyclable": str(cut.openings.recyclable),
            "compute_carry": str(cut.openings.compute_carry),
            "availability_carry": str(cut.openings.availability_carry),
            "adjustments": _pairs(cut.openings.adjustments),
        },
        "nodes": Texts(nodes),
        "emission": str(s.emission),
        "release": str(s.release),
        "pools": {
            "compute": str(s.compute_pool),
            "availability": str(s.availability_pool),
            "treasury": str(s.treasury_pool),
        },
        "weights": {
            "compute": str(s.compute_weight),
            "availability": str(s.availability_weight),
            "availability_tier_2": str(s.availability_tier_2_weight),
        },
        "unallocated": [
            [one.pool, one.reason, str(one.units), str(one.returned)] for one in s.unallocated
        ],
        "carries": {"compute": str(s.compute_carry), "availability": str(s.availability_carry)},
        "returned": {"emission": str(s.returned_emission), "release": str(s.returned_release)},
        "rewards": Texts(texts_of(s.rewards, _pair)),
        "adjustments_open": _pairs(s.adjustments),
    }
    return pieces_of(document)


@dataclass(frozen=True, slots=True)
class Texts:
    """A list that may have a million rows, some of them in a text: JSON without its brackets."""

    texts: Iterable[str]


def pieces_of(document: Mapping[str, Any]) -> Iterator[bytes]:
    """Canonical bytes piece by piece, so that a large file is never in memory as a whole."""
    for piece in _pieces(document):
        yield piece.encode()


def _pieces(document: Mapping[str, Any]) -> Iterator[str]:
    for mark, name in zip(chain("{", repeat(",")), sorted(document), strict=False):
        yield f"{mark}{_json(name)}:"
        value = document[name]
        if isinstance(value, Texts):
            yield "["
            for between, text in zip(chain([""], repeat(",")), value.texts, strict=False):
                yield between
                yield text
            yield "]"
        else:
            yield _json(value)
    yield "}"


def texts_of(
    rows: Sequence[Any], form: Callable[[Any], Any], at_once: int = ROWS_AT_ONCE
) -> Iterator[str]:
    """Many rows are encoded some at a time: one call for all of them would need the memory for all,
    and hold up every other thread.
    """
    for at in range(0, len(rows), at_once):
        yield _json([form(row) for row in rows[at : at + at_once]])[1:-1]


def node_texts(nodes: Sequence[NodeCut], at_once: int = ROWS_AT_ONCE) -> Iterator[str]:
    """Nodes of a cut as they are in the file, so many to a text."""
    return texts_of(nodes, node_row, at_once)


def file_sha256(settlement: Settlement) -> str:
    """Hex SHA-256 of the epoch file."""
    return sha256(epoch_file(settlement)).hexdigest()


def policy_document(policy: PolicyPublished) -> dict[str, Any]:
    """What of a policy decides rewards; not who published it, and when."""
    return {
        "version": policy.version,
        "epoch_length_us": policy.epoch_length_us,
        "segments": [[s.start_epoch, s.n_epochs, str(s.total)] for s in policy.segments],
        "hard_cap": str(policy.hard_cap.units),
        "compute_ppm": policy.compute_ppm,
        "availability_ppm": policy.availability_ppm,
        "treasury_ppm": policy.treasury_ppm,
        "compute_base": policy.compute_base,
        "holdback_epochs": policy.holdback_epochs,
        "effective_from_epoch": policy.effective_from_epoch,
        "rewards": None if policy.rewards is None else _terms_document(policy.rewards),
    }


def _terms_document(terms: RewardTerms) -> dict[str, Any]:
    document = {field.name: getattr(terms, field.name) for field in fields(terms)}
    for name in ("source_weights", "class_ratings"):
        document[name] = [[one.name, one.ppm] for one in document[name]]
    for name in _WIDE:
        if document[name] is not None:
            document[name] = str(document[name])
    return document


def node_row(node: NodeCut) -> list[Any]:
    """A node of the cut as it is in the file."""
    return [
        node.node_id,
        node.account_id,
        [[source, str(burned), str(gpu_us)] for source, burned, gpu_us in node.uses],
        str(node.burned_tokens),
        node.score_ppm,
        [[name, tier, str(us), str(promised)] for name, tier, us, promised in node.attested],
        str(node.bought_tokens),
    ]


def _pairs(pairs: tuple[tuple[str, int], ...]) -> list[list[str]]:
    return [_pair(pair) for pair in pairs]


def _pair(pair: tuple[str, int]) -> list[str]:
    return [pair[0], str(pair[1])]


# --- reading ---------------------------------------------------------------------------------


def read_cut(data: bytes) -> Cut:
    """What an epoch file says went in; `settle` of it must give these bytes again.

    Raises ValueError when the bytes are no epoch file of this format.
    """
    try:
        told = read_json(data)
        if told["format"] != EPOCH_FORMAT:
            raise ValueError(f"format {told['format']}")
        opening = told["openings"]
        return Cut(
            epoch=told["epoch"],
            cut_position=int(told["cut_position"]),
            policy=read_policy(told["policy"]),
            openings=Openings(
                unissued=int(opening["unissued"]),
                recyclable=int(opening["recyclable"]),
                compute_carry=int(opening["compute_carry"]),
                availability_carry=int(opening["availability_carry"]),
                adjustments=tuple((who, int(delta)) for who, delta in opening["adjustments"]),
            ),
            nodes=[read_node(row) for row in told["nodes"]],
        )
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"no epoch file: {error!r}") from error


def read_policy(document: dict[str, Any], by: str = "", at_us: int = 0) -> PolicyPublished:
    """The policy of `policy_document`. Raises KeyError, TypeError, ValueError."""
    told = dict(document)
    rewards = told.pop("rewards")
    segments = tuple(EmissionSegment(start, n, int(total)) for start, n, total in told["segments"])
    told.update(segments=segments, hard_cap=Amount(Asset.TOKEN, int(told["hard_cap"])))
    terms = None if rewards is None else _read_terms(rewards)
    return PolicyPublished(
        **told, by=by, at_us=at_us, rewards=terms, governance=None, proposal=None
    )


def _read_terms(document: dict[str, Any]) -> RewardTerms:
    told = dict(document)
    for name in ("source_weights", "class_ratings"):
        told[name] = tuple(Rated(who, ppm) for who, ppm in told[name])
    for name in _WIDE:
        if told[name] is not None:
            told[name] = int(told[name])
    return RewardTerms(**told)


def read_node(row: list[Any]) -> NodeCut:
    """A node of the cut from its row in the file."""
    node_id, account_id, uses, burned_tokens, score_ppm, attested, bought_tokens = row
    return NodeCut(
        node_id,
        account_id,
        tuple(Use(source, int(burned), int(gpu_us)) for source, burned, gpu_us in uses),
        int(burned_tokens),
        score_ppm,
        tuple(
            Attested(name, tier, int(us), int(promised)) for name, tier, us, promised in attested
        ),
        int(bought_tokens),
    )

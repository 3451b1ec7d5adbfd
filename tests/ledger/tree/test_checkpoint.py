"""Signed notes against the C2SP example; a signer that never signs two histories."""

from __future__ import annotations

from pathlib import Path

import pytest
from nacl.signing import SigningKey

from ledger.tree import merkle
from ledger.tree.checkpoint import (
    Checkpoint,
    NoteInvalid,
    Signer,
    SigningRefused,
    VerifierKey,
    append_head,
    open_checkpoint,
    open_note,
    parse_checkpoint,
    parse_verifier_key,
    remembered,
    sign_note,
)

C2SP_KEY = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
C2SP_NOTE = (
    "This is an example message.\n\n"
    "— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuw"
    "HjG1Yu72IneyaQM=\n"
)
ORIGIN = "tallystick.example/v1/audit/log"
SEED = bytes(range(32))
LEAVES = [merkle.leaf(b"%d" % i) for i in range(300)]


@pytest.fixture(scope="module")
def tree() -> merkle.Tiles:
    made = merkle.Tiles()
    made.extend(b"".join(LEAVES))
    return made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "signed"
    made.touch()
    return made


def sign(signer: Signer, tree: merkle.Tiles, size: int) -> str:
    return signer.sign(
        size, tree.root(size), lambda old: merkle.consistency(old, size, tree.hash_at), 0
    )


def test_the_signed_note_example_of_c2sp_opens() -> None:
    key = parse_verifier_key(C2SP_KEY)
    assert str(key) == C2SP_KEY
    text, by = open_note(C2SP_NOTE, [key])
    assert text == "This is an example message.\n"
    assert by == (key,)


@pytest.mark.parametrize("at", range(0, len(C2SP_NOTE) - 1, 3))
def test_a_change_anywhere_in_a_note_is_seen(at: int) -> None:
    other = "x" if C2SP_NOTE[at] != "x" else "y"
    with pytest.raises(NoteInvalid):
        open_note(C2SP_NOTE[:at] + other + C2SP_NOTE[at + 1 :], [parse_verifier_key(C2SP_KEY)])


def test_signatures_of_unknown_keys_are_ignored_and_sixteen_fit() -> None:
    mine = SigningKey(SEED)
    note = sign_note("a text\n", "me", mine)
    for i in range(15):
        stranger = sign_note("a text\n", f"witness.example/{i}", SigningKey(bytes([i]) * 32))
        note += stranger.split("\n\n")[1]
    text, by = open_note(note, [VerifierKey("me", bytes(mine.verify_key))])
    assert text == "a text\n"
    assert [key.name for key in by] == ["me"]


def test_a_wrong_signature_of_a_known_key_spoils_the_note() -> None:
    mine, other = SigningKey(SEED), SigningKey(bytes(32))
    keys = [VerifierKey(name, bytes(key.verify_key)) for name, key in (("a", mine), ("b", other))]
    wrong = sign_note("another text\n", "b", other).split("\n\n")[1]
    with pytest.raises(NoteInvalid, match="wrong signature of b"):
        open_note(sign_note("a text\n", "a", mine) + wrong, keys)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no newline",
        "log\n1\n",
        "log\n01\n{root}\n",
        "log\n-1\n{root}\n",
        "log\n1\nAAAA\n",
        "log\n1\n{root}\nextension\n",
        "a log\n1\n{root}\n",
        "log\n٣\n{root}\n",
        "log\n9223372036854775808\n{root}\n",
    ],
)
def test_a_checkpoint_of_any_other_form_is_refused(text: str) -> None:
    root = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
    assert parse_checkpoint(f"log\n0\n{root}\n") == Checkpoint("log", 0, merkle.EMPTY_ROOT)
    with pytest.raises(NoteInvalid):
        parse_checkpoint(text.format(root=root))


@pytest.mark.parametrize("name", ["", "a b", "a+b", "a\tb", "a\u00a0b"])
def test_a_log_needs_a_name_without_space_or_plus(name: str, path: Path) -> None:
    with pytest.raises(NoteInvalid):
        Signer(path, name, SEED)


def test_a_growing_log_is_signed_and_opens(path: Path, tree: merkle.Tiles) -> None:
    with Signer(path, ORIGIN, SEED) as signer:
        for size in (0, 1, 2, 255, 256, 300):
            note = sign(signer, tree, size)
            opened = open_checkpoint(note, parse_verifier_key(str(signer.verifier_key)))
            assert opened == Checkpoint(ORIGIN, size, tree.root(size))
        assert sign(signer, tree, 300) == note
    assert len(path.read_text().splitlines()) == 5


def test_a_database_restored_to_an_older_point_is_not_signed(
    path: Path, tree: merkle.Tiles
) -> None:
    with Signer(path, ORIGIN, SEED) as signer:
        sign(signer, tree, 200)
    with Signer(path, ORIGIN, SEED) as signer:
        with pytest.raises(SigningRefused, match="200 were signed before"):
            sign(signer, tree, 199)
        assert sign(signer, tree, 201)


def test_another_history_is_not_signed_at_the_same_size_or_a_larger_one(
    path: Path, tree: merkle.Tiles
) -> None:
    other = merkle.Tiles()
    other.extend(b"".join([merkle.leaf(b"rewritten"), *LEAVES[1:]]))
    with Signer(path, ORIGIN, SEED) as signer:
        sign(signer, tree, 200)
        for size in (200, 250):
            with pytest.raises(SigningRefused, match="not those signed before"):
                sign(signer, other, size)


def test_a_line_cut_by_a_crash_is_void_and_signing_goes_on(path: Path, tree: merkle.Tiles) -> None:
    with Signer(path, ORIGIN, SEED) as signer:
        sign(signer, tree, 100)
    whole = path.read_bytes()
    for cut in (b"2", b"200", b"200 ", b"200 AAAA"):
        path.write_bytes(whole + cut)
        with Signer(path, ORIGIN, SEED) as signer:
            assert signer.last.size == 100
        with Signer(path, ORIGIN, SEED) as signer:
            sign(signer, tree, 150)


def test_a_line_cut_by_a_crash_is_no_head_and_closed_before_the_next(path: Path) -> None:
    root = "A" * 43 + "="
    text = f"4 {root}\n5 {root}\n7 void\n8 AAAA void\n9 {root[:9]}"
    assert [head.line for head in remembered(text, ORIGIN)] == [f"{n} {root}\n" for n in (5, 4)]
    assert not list(remembered("", ORIGIN))
    path.write_text(text)
    later = Checkpoint(ORIGIN, 11, bytes(32))
    append_head(path, later)
    assert path.read_text() == f"{text} void\n{later.line}"
    assert next(remembered(path.read_text(), ORIGIN)) == later


def test_a_damaged_file_stops_the_signer(path: Path) -> None:
    path.write_text("100 nonsense\n")
    with pytest.raises(SigningRefused, match="damaged"):
        Signer(path, ORIGIN, SEED)


def test_a_signer_makes_no_file_that_has_forgotten_what_was_signed(path: Path) -> None:
    path.unlink()
    with pytest.raises(FileNotFoundError):
        Signer(path, ORIGIN, SEED)
    assert not path.exists()


def test_two_signers_of_one_file_do_not_run_at_once(path: Path) -> None:
    with Signer(path, ORIGIN, SEED), pytest.raises(BlockingIOError):
        Signer(path, ORIGIN, SEED)

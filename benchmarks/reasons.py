"""Why a figure is not reached, as far as it was looked into: where the time goes, in words."""

from __future__ import annotations

REASONS = {
    "reports of 100 samples over HTTP": "One process of the server does it all, and the load"
    " generator takes its time from the same cores.",
    "usage log append": "PostgreSQL chains and files each report in PL/pgSQL where COPY only"
    " stores bytes; with checking, the signature and the strict reading come before it.",
    "market log append x1": "One append is one round trip and one commit, as the library's: beside"
    " the facts it writes the chain, the position and the books in the same transaction. No round"
    " trip is left to save; what comes next is less work for each fact in the append function.",
    "market log append x100": "Most of the time goes into PL/pgSQL that books each entry and into"
    " the indexes of facts and postings.",
    "market log append of": "Two thirds of it is Python in one process, for one fact at a time:"
    " encoding, hashing, and the interpreter's lock, which the threads hand to each other.",
    "the same, with all views following": "Every view reads each fact as JSON for itself, on the"
    " two cores on which the threads append as fast as they can.",
    "double entry": "The append books each entry with the balance after it, chains each fact and"
    " keeps one order of all writers; the rest is the indexes of facts and postings, which the"
    " limit keeps too.",
    "accrual of": "Each lease is decided in Python by itself, and its fact is encoded by itself.",
    "rebuild of usage, reports": "Reports are decoded in Python, row by row into columns; the limit"
    " is that decoding alone.",
    "rebuild of": "A view reads every fact as JSON in PostgreSQL and writes its rows and indexes;"
    " one that keeps a row for each fact, or asks its own rows before it writes, takes longest.",
    "rebuild of reputation": "Of 10 us of PostgreSQL for each fact of a short log, 4.0 find and"
    " decode the facts that its rules read and 2.4 write its rows, each into three indexes; by"
    " those two alone it would take 6.4 us. The next step is time in service: it counts devices and"
    " maintenance again for each fact.",
    "rebuild of epochs": "Of 7.1 us of PostgreSQL for each fact of a short log, 3.0 find and"
    " decode facts and 1.1 write rows. The next step: what a charge was paid from is taken apart"
    " by three rules; one could do it for all.",
    "rebuild of leases": "Of 7.6 us of PostgreSQL for each fact of a short log, 4.0 find and"
    " decode facts and 1.5 write rows and indexes. The next step: the state after each fact is"
    " found by two sorts.",
    "rebuild of audit_index": "Of 8.3 us of PostgreSQL for each fact of a short log, 3.9 decode"
    " all facts, of which it reads twelve fields each, and 3.4 write its rows and two unique"
    " indexes: by those two alone it would take 7.3 us.",
    "rebuild of fleet": "Of 4.4 us of PostgreSQL for each fact of a short log, 3.1 find and decode"
    " facts: an accrual alone, of 1 kB, is read as JSON twice (5 us) for two of its fields, because"
    " PostgreSQL checks a text before it takes it apart.",
    "audit verify": "More than half of a report's time is its signature; the rest decodes, judges"
    " and hashes its rows, as the door does. A signature alone takes longer on some machines than a"
    " whole report may here: the limit beside it says what this one can.",
    "the same by two processes": "The walk of the facts and the reading of the files' hashes stay"
    " in one process, and two processes share the caches and the clock of the machine.",
    "accounts credited beside": "One process reads, PostgreSQL sorts and adds up, workers judge."
    " Of 134 us of processor for each node (200,000 nodes, a busy machine) workers take 67,"
    " mostly for tiers and scores in Python; PostgreSQL 44, of which 31 before the first row,"
    " when no worker has work: it sorts what was there and the evidence of owners by nodes; the"
    " process that reads 22. Others wait for a processor, for the disk while the file goes there,"
    " and for one append of 500 rewards. What comes next is to ask for the evidence of owners on"
    " a second connection at the same time.",
    "lease open": "One process does it all under one interpreter's lock. Two thirds of its time of"
    " the processor is the desk: a third of that looks for the node, a quarter decides and folds, a"
    " quarter encodes and appends, the rest reads what a round needs. Most of the other third is"
    " the event loop, spread thin: the framework's layers, the caller's line, the log line, the"
    " socket. What comes next is a desk and a loop that are no longer in one process.",
}
UNKNOWN = "Why is not known yet: it was not profiled."


def reason_of(what: str) -> str:
    """The reason under the longest name that the line begins with."""
    found = [name for name in REASONS if what.startswith(name)]
    return REASONS[max(found, key=len)] if found else UNKNOWN

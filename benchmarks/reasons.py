"""Why a figure is not reached, as far as it was looked into: where the time goes, in words."""

from __future__ import annotations

REASONS = {
    "reports of 100 samples over HTTP": "One process of the server does it all, and the load"
    " generator takes its time from the same cores. Half of the server's time is the check of a"
    " report, of which the signature is half; the answer takes a seventh (two writes), HTTP parser,"
    " ASGI and tasks as much, receiving and the commit a twelfth each, the envelope a twentieth"
    " (decision 0086). A faster signature or decoding was looked for there and not found. What"
    " comes next is a front that speaks HTTP outside the interpreter and hands reports in batches.",
    "usage log append": "PostgreSQL chains and files each report in PL/pgSQL where COPY only"
    " stores bytes; with checking, the signature and the strict reading come before it.",
    "market log append x1": "One append is one round trip and one commit, as the library's: beside"
    " the facts it writes the chain, the position and the books in the same transaction. No round"
    " trip is left to save; what comes next is less work for each fact in the append function.",
    "market log append x100": "Of what PostgreSQL spends on a fact in a batch of 100, a third"
    " writes it with its two unique indexes and its chain, a quarter moves the balances, a fifth"
    " writes the posting, the rest is PL/pgSQL between them; the process encodes and hashes for"
    " two thirds as long. What comes next is to encode a batch while PostgreSQL records another,"
    " which helps one writer alone.",
    "market log append of": "Two thirds of it is Python in one process, for one fact at a time:"
    " encoding, hashing, and the interpreter's lock, which the threads hand to each other. The"
    " figure is reached in some runs and missed by a twentieth in others. What comes next is a"
    " second process that encodes.",
    "the same, with all views following": "Every view reads each fact as JSON for itself, on the"
    " two cores on which the threads append as fast as they can.",
    "double entry": "The append books each entry with the balance after it, chains each fact and"
    " keeps one order of all writers. Of 18.5 us of PostgreSQL for a fact of a batch of 1,000 (on"
    " PostgreSQL 15, beside other work) 8.0 write the fact with its two unique indexes, 4.5 the"
    " posting, 3.1 move balances, the rest is PL/pgSQL; the process takes 15 more. The peer has no"
    " facts: facts and postings alone cost about what the figure leaves for everything. What comes"
    " next is an index less on facts.",
    "accrual of": "One process does it all under one interpreter's lock, with PostgreSQL beside"
    " it. Of the process's time for a warm lease hour a half decides, folds and books, a fifth"
    " encodes the fact, a fifth finds what is due, the rest makes the arrays and leaves of the"
    " append. A cold one decodes and folds the five facts of its lease first: a third of all. To"
    " decide the next thousand leases while PostgreSQL records those before was tried, with the"
    " same bytes, and gained nothing. What comes next is deciding in several processes that keep"
    " the states of their leases.",
    "rebuild of usage, reports": "Reports are decoded in Python, row by row into columns; the limit"
    " is that decoding alone.",
    "rebuild of": "A view reads every fact as JSON in PostgreSQL and writes its rows and indexes;"
    " one that keeps a row for each fact, or asks its own rows before it writes, takes longest.",
    "rebuild of reputation": "Of 11.7 us of PostgreSQL for each fact of a log of 196,000, 4.6 find"
    " and decode facts, on a connection beside the one that applies them: that one is waited for,"
    " 7.2. 3.2 of them are the hours that a device was there, of which two thirds write two rows"
    " of evidence into three indexes each. The next step is one row for node and provider.",
    "rebuild of epochs": "Of 7.3 us of PostgreSQL for each fact of a log of 196,000, 3.0 find and"
    " decode facts, on a connection beside the one that applies them: that one is waited for, 4.4."
    " 1.2 of them write lots, 1.3 what strangers paid, 0.7 leased time, 0.6 weights. The next step:"
    " what a charge was paid from is still taken apart by two rules.",
    "rebuild of leases": "Of 8.6 us of PostgreSQL for each fact of a log of 196,000, 4.1 find and"
    " decode facts, on a connection beside the one that applies them, 2.1 write the history, 0.7"
    " make its two indexes. By the longer of both connections it would take 4.8 us. The next step:"
    " a column of the history that orders leases by a number, not by their names.",
    "rebuild of audit_index": "Of 9.2 us of PostgreSQL for each fact of a log of 196,000, 3.8"
    " decode all facts, on a connection beside the one that writes: rows take 3, two unique"
    " indexes 1.6 at the end, when nothing is left to decode. By the longer of both"
    " connections it would take 5.4 us. The next step: one of the two indexes less.",
    "rebuild of movements": "Of 4.7 us of PostgreSQL for each fact of a log of 196,000, 2.5 add up"
    " lines and write them, 0.4 find new accounts, 0.4 make indexes; 0.9 are on a connection"
    " beside.",
    "rebuild of regions": "Of 5.3 us of PostgreSQL for each fact of a log of 196,000, 3.3 find and"
    " decode facts, on a connection beside the one that applies them: two kinds of many fields.",
    "rebuild of fleet": "Of 4.4 us of PostgreSQL for each fact of a short log, 3.1 find and decode"
    " facts: an accrual alone, of 1 kB, is read as JSON twice (5 us) for two of its fields, because"
    " PostgreSQL checks a text before it takes it apart.",
    "audit verify": "More than half of a report's time is its signature; the rest decodes, judges"
    " and hashes its rows, as the door does. A signature alone takes longer on some machines than a"
    " whole report may here: the limit beside it says what this one can. What decodes faster was"
    " tried and is slower for rows as few as these (decision 0086); what comes next is rules that"
    " run over the columns of many reports at once.",
    "the same by two processes": "The walk of the facts and the reading of the files' hashes stay"
    " in one process, and two processes share the caches and the clock of the machine.",
    "live seal": "One process reads, PostgreSQL sorts and adds up, workers judge. Of 134 us of"
    " processor for each node (200,000 nodes, a busy machine) workers take 67, mostly for tiers"
    " and scores in Python; PostgreSQL 44, of which 31 before the first row, when no worker has"
    " work: it sorts what was there and the evidence of owners by nodes; the process that reads"
    " 22. What comes next is to ask for the evidence of owners on a second connection meanwhile.",
    "appends of two writers beside it": "They wait for a processor, for the disk while the epoch"
    " file goes there, and for one append of 500 rewards. Beside no seal at all a commit waits as"
    " long now and then: the disk is shared with whatever else the machine's host does. What comes"
    " next is a disk of its own for the epoch file, and a figure at p99, as elsewhere.",
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

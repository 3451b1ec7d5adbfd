"""A second implementation of what an epoch pays, in SQL: it shares no formula with the first.

Written from design economics 7 to 10, 13, 14 and 18, and from the published format of the
epoch file. Nothing in here imports a module of ours that computes; the tests beside it do.
"""

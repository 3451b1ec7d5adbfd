"""Which sentence does a refusal get? A reason and its facts go in; a status and a sentence in the
units of people come out. One file for each room whose reasons it holds.
"""

__all__ = ("sentence", "words")

"""What `audit verify` checks without a server: the log's key as it is given, the proof of a line.

Nothing here asks a server but `log_key`, when the key is given as an address.
"""

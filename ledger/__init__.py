"""What was recorded: the two logs, the books and their proofs. The only room that writes truth."""

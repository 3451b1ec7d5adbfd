"""What the log means so far. Every table here can be dropped and rebuilt from the logs."""

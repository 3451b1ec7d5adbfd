"""What did this GPU do? A thin meter that runs on other people's machines and signs what it saw."""

"""The tamper drill: whatever is changed of what is stored, a command that exists says so."""

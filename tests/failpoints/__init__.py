"""Named places where a process of ours may die, or an error may come: what holds afterwards."""

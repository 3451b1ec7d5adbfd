"""How a seeded suite is run over a range of seeds, and where it is kept what passed."""

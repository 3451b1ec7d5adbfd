"""Pages in a real browser: the browser, the click through all pages, and a market behind them."""

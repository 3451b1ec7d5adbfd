"""What a node and a fact cost a month in bytes, processor and gas: numbers of docs/capacity.md."""

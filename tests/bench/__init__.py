"""How fast it is, as ratios within one run: `make bench`, or `python -m tests.bench`. Nothing in here judges a figure."""

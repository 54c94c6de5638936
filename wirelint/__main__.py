"""`python -m wirelint`."""

from wirelint.cli import main

if __name__ == "__main__":
    main()

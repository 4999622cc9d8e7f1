"""``python -m idemcore``: the command line where no script is installed."""

from idemcore.cli import main

if __name__ == "__main__":
    main()

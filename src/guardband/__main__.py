"""`python -m guardband` is the command `guardband`."""

from guardband.cli import main

main()

"""`python -m mtlirt` is the command line."""

from mtlirt.cli import main

main()

"""`python -m diffan` is the command line."""

from diffan.cli import main

main()

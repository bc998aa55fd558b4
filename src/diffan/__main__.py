"""`python -m diffan`, and what the `diffan` command runs."""

from __future__ import annotations

import sys


def main() -> None:
    """The command line; also while its libraries are still being loaded an interruption is one line."""
    try:
        from diffan.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("diffan: interrupted; no result was written\n")
        sys.exit(130)


if __name__ == "__main__":
    main()

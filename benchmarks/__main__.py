"""``python -m benchmarks``."""

import sys

if __name__ == "__main__":
    # Not above: the load generator's process imports this file as well, and does not need it.
    from benchmarks.cli import main

    sys.exit(main())

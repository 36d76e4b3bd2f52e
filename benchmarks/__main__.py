"""``python -m benchmarks``."""

import sys
import warnings

if __name__ == "__main__":
    warnings.filterwarnings("ignore", message="pkg_resources is deprecated")
    # Not above: the load generator's process imports this file as well, and needs nothing of it.
    from benchmarks.run import main

    sys.exit(main())

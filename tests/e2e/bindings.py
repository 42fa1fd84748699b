"""For tests of `import shoal.ps`: numpy and the module of the build that SHOAL_BIN lies in; a test ends as skipped where the
build has none."""
import os
import sys

import harness

PATH = os.path.join(os.path.dirname(os.path.abspath(harness.DEFAULT_BINARY)), "python")
sys.path.insert(0, PATH)
try:
    import numpy as np  # noqa: F401
    import shoal.ps  # noqa: F401
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)


def expect_error(kind, words, action):
    try:
        action()
    except kind as error:
        assert words in str(error), f"{error} lacks '{words}'"
        return
    raise AssertionError(f"no {kind.__name__} that says '{words}'")

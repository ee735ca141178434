"""Compiled programs of the tests are kept apart from the user's."""

import os
import tempfile

os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="spmdc-tests-")

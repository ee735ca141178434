"""Fits a plane to points with fit.spmd, which is compiled in this process.

    pip install spmdc-*.whl
    python3 examples/callers/caller.py 100
"""

import pathlib
import sys

import numpy as np
import spmdc

POINTS = 1000

fit = spmdc.compile(pathlib.Path(__file__).with_name("fit.spmd"), mesh={"X": 2}, set={"N": POINTS})

# Points of the plane 2 a - b + 0.5 c + 3.
x = np.sin(np.arange(POINTS)[:, None] * np.array([2, 3, 4])).astype(np.float32)
y = x @ np.array([2, -1, 0.5], np.float32) + np.float32(3)

try:
    model, loss = fit(x, y, steps=int(sys.argv[1]) if len(sys.argv) > 1 else 100)
except spmdc.ProgramError as error:
    # The code of the error, the message and the line of fit.spmd.
    sys.exit(str(error))
print("{:.3f} a + {:.3f} b + {:.3f} c + {:.3f}, loss {:.1e}".format(*model.w, model.b, loss))

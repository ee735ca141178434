"""Writes args.npz: an array for each kind of parameter, by name. Run with numpy 2.4 and ml_dtypes 0.6 installed."""

import pathlib
import numpy as np
import ml_dtypes

w = np.arange(1, 7).reshape(3, 2).astype(ml_dtypes.bfloat16)
arrays = {
    "p.w": w,  # <V2
    "p.layer.w": w.view(np.uint16).view("V2"),  # |V2
    "p.layer.b": np.array([0.5, 448], ml_dtypes.float8_e4m3fn),  # <V1
    "p.layer.c": np.array([-2, 0.25], ml_dtypes.float8_e5m2),  # <f1
    "p.layer.d": np.array([3, np.inf], ml_dtypes.float8_e5m2).view(np.uint8).view("V1"),  # |V1
    "z": np.array([1 - 2j, 0.5j], np.complex64),
    "c": np.array(2 + 1j, np.complex128),
    "mask": np.array([True, False, True]),
    "seed": np.array([0, 42], np.uint32),
    "n": np.array(-7),
    "pair.0": np.asfortranarray(np.arange(6, dtype=np.float16).reshape(2, 3)),
    "pair.1": np.arange(3, dtype=">i4"),
    "empty": np.zeros((0, 3), np.float32),
}
np.savez(pathlib.Path(__file__).parent / "args.npz", **arrays)

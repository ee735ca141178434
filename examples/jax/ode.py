"""Diffrax solves the Lotka-Volterra equations with adaptive steps, from 24 initial values that are split over eight devices.

    python3 examples/jax/ode.py
    spmdc run examples/jax/ode.mlir --args examples/jax/ode.npz

`vmap` makes one loop of all solutions: each chooses its own steps, and the loop ends when the last is done. The program computes in double
precision, because the choice of a step depends on its rounding.
"""

import os

from export import auto_mesh, export

# Failures become NaN: a program without Python cannot raise Python's exceptions.
os.environ["EQX_ON_ERROR"] = "nan"
import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P

jax.config.update("jax_enable_x64", True)


def growth(t, y, rates):
    prey, predators = y
    births, hunting, deaths, feeding = rates
    return jnp.stack([births * prey - hunting * prey * predators, feeding * prey * predators - deaths * predators])


def solve(initial, rates, times):
    """The populations at `times` from each of the initial ones, f64[24, 16, 2], and the number of steps of each."""

    def one(y0):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(growth),
            diffrax.Tsit5(),
            t0=times[0],
            t1=times[-1],
            dt0=0.1,
            y0=y0,
            args=rates,
            saveat=diffrax.SaveAt(ts=times),
            stepsize_controller=diffrax.PIDController(rtol=1e-5, atol=1e-5),
        )
        return solution.ys, solution.stats["num_steps"]

    return jax.vmap(one)(initial)


def main():
    rng = np.random.default_rng(0)
    mesh = auto_mesh(solution=8)
    initial = jax.device_put(rng.uniform(5, 20, (24, 2)), NamedSharding(mesh, P("solution")))
    rates = jax.device_put(np.array([0.6, 0.04, 0.5, 0.02]), NamedSharding(mesh, P()))
    times = jax.device_put(np.linspace(0, 20, 16), NamedSharding(mesh, P()))
    populations, steps = export("ode", solve, initial, rates, times)
    print(f"{steps.min()} to {steps.max()} steps, at the end {populations[0, -1]} from {initial[0]}")


if __name__ == "__main__":
    main()

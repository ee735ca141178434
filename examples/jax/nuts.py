"""NumPyro's No-U-Turn sampler on a logistic regression: the observations are split over four devices.

    python3 examples/jax/nuts.py
    spmdc run examples/jax/nuts.mlir --args examples/jax/nuts.npz

All of the sampling is one program: the random numbers, the adaptation, and the trees of the sampler as nested loops. Each step of a
trajectory adds the gradients of all observations. Trajectories amplify rounding, so the program computes in double precision.
"""

from export import auto_mesh, export

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.sharding import NamedSharding, PartitionSpec as P
from numpyro.infer import MCMC, NUTS

jax.config.update("jax_enable_x64", True)

TRUTH = np.array([1.0, -2.0, 0.5])


def model(x, y):
    weights = numpyro.sample("weights", dist.Normal(0, 2).expand([len(TRUTH)]))
    bias = numpyro.sample("bias", dist.Normal(0, 2))
    with numpyro.plate("observations", len(x)):
        numpyro.sample("y", dist.Bernoulli(logits=x @ weights + bias), obs=y)


def sample(key, x, y):
    """20 samples from the posterior, their mean, and their standard deviation."""
    mcmc = MCMC(NUTS(model), num_warmup=40, num_samples=20, progress_bar=False)
    mcmc.run(key, x, y)
    samples = mcmc.get_samples()
    mean, deviation = (jax.tree.map(lambda s: f(s, axis=0), samples) for f in (jnp.mean, jnp.std))
    return {"samples": samples, "mean": mean, "deviation": deviation}


def main():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((96, len(TRUTH)))
    y = (rng.uniform(size=96) < 1 / (1 + np.exp(-x @ TRUTH))).astype(np.int32)
    mesh = auto_mesh(data=4)
    x, y = jax.device_put((x, y), NamedSharding(mesh, P("data")))
    key = jax.device_put(jax.random.PRNGKey(0), NamedSharding(mesh, P()))
    found = export("nuts", sample, key, x, y)
    for weight, deviation, truth in zip(found["mean"]["weights"], found["deviation"]["weights"], TRUTH):
        print(f"{weight:.2f} +- {deviation:.2f}, in truth {truth}")


if __name__ == "__main__":
    main()

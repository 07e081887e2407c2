"""What every paper uses: seeds, words as numbers, hash functions, noise, composition; and checks, exact sampling, tables."""

from evolvingdp.core.public import attach

__all__, __getattr__, __dir__ = attach(
    __name__,
    seeds=["stream"],
    words=["decode", "encode"],
    hashing=["HashFamily", "MultiplyShift"],
    randomizers=["SignFlip"],
    noise=["DiscreteGaussian", "DiscreteLaplace", "Gaussian", "IntegerNoise", "Laplace", "MonitorNoise", "Noise"],
    accounting=[
        "advanced",
        "basic",
        "delta_of_concentrated",
        "delta_of_gaussian",
        "delta_of_reports",
        "gaussian_mu",
        "optimal",
    ],
    olh=["OLH"],
    exchange=["Client", "Listed", "Round", "Server"],
    detection=["Fit", "Watch", "detect"],
    smoothing=["Smooth", "smooth"],
    checks=["ParameterError"],
)

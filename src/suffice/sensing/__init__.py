"""Sensing with real parts: data, probes, noise, prior, sampler, classifier and an exact oracle."""

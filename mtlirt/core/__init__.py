"""Pure functions of arrays: projections, angles, likelihood, interpolation. No frames, no files, no printing."""

"""What all layers need to run: compiled code, threads, signals, Dask, scikit-learn, SIMD."""

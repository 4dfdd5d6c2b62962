"""The modules of benchmarks/run; they use the standard library only."""

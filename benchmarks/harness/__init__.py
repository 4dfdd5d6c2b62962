"""What benchmarks/run is made of; the standard library only."""

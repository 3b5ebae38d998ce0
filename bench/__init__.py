"""The measurements behind docs/benchmarks.md and the training of the models. No package of the program imports it."""

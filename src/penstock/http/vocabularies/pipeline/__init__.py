"""The words of the persist-first pipeline: grid, export, control and what waits."""

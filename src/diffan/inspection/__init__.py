"""A second look at a finished run: fitted effects, residuals and reasons for doubt, kept beside the graph."""

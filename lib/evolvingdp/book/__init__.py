"""What notebooks and the book are made with: parameters, results, figures, runs, sweeps, comparisons, pages."""

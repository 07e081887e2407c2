"""All methods for a mean that changes, at equal epsilon: where each wins, and what a choice from public inputs costs."""

"""From experiments to pages: running notebooks, sweeping, what a page shows, rendering the book, the command line."""

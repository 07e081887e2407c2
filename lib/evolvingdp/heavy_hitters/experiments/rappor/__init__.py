"""Section 4.1's comparison with RAPPOR: Google's Demo 3 (Figure 4), what it costs, and a whole dictionary on Brown."""

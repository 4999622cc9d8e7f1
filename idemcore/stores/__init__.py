"""Where records are kept: one contract (`base`), one module for each back end; downwards imports only."""

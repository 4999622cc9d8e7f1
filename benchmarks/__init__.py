"""What it costs: one file for each question, contenders interleaved in one run, ratios before times."""

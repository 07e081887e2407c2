"""ThresholdMonitor: what deletion buys, and what each way to calibrate it costs."""

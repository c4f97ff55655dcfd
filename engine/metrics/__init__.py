"""What the engines count and how they are configured, for Prometheus over HTTP."""

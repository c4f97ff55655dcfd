"""Scan x probe -> findings: what an engine refuses, why, where, and the smallest edit that it accepts instead."""

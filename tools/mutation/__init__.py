"""Mutation testing of the Triton kernels: do their parity tests notice?"""

"""Decides which trials run where, records what they found, and compares, ranks and explains it."""

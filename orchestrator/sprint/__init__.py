"""The product's loops; engine-free, names no persona."""

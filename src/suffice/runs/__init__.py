"""Runs over many images: shards that are made once, anywhere, and never half."""

"""One folder per op: reference, quick PyTorch, and one public function."""

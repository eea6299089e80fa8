"""Networks of PyTorch through the converters that people use for them, built in environments of their own."""

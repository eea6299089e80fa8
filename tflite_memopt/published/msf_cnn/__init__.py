"""msf-CNN: which layers of a chain are fused into blocks that are computed patch by patch."""

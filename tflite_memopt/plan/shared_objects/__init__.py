"""Shared objects: buffers that tensors share whole, such as GPU textures; no offsets."""

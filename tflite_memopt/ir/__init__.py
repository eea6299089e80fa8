"""The intermediate representation: objects that refer to objects and know nothing of the file format."""

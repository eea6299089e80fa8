"""Methods of published papers for `compare`, loaded only when somebody asks for one of them."""

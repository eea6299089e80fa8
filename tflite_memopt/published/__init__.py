"""Methods of published papers, to compare with: loaded only when somebody asks for one of them."""

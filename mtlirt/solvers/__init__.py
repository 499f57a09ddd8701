"""How an objective is minimised: `Block`, the default, and `Adam`, the paper's reference."""

"""How much the domains should borrow: paths over lam, cross-validation, pooling regimes."""

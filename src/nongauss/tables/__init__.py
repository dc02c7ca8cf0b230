"""Host side, no JAX: reading tables, kinds of columns, encoding, scaling, canonical rows."""

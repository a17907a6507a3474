"""The vendors of models behind one port."""

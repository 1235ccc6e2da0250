"""Adapters for frameworks: LangChain, Haystack, MTEB, pandas. Each module needs its framework."""

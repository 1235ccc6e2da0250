"""semsearch beside other tools and other recipes."""

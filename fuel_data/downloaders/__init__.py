"""Downloaders: each fetches the files of one data set, checked by their digests."""

all_downloaders: tuple = ()

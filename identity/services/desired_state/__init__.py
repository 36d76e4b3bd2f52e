"""Making an instance what a document describes: `Build` with one file for each family of things.

An import makes everything anew; a described state is compared with what there is.
"""

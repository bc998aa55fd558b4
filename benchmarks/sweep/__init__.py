"""The machinery behind run.py and compare.py: cells, where they are kept, who competes, what is reported."""

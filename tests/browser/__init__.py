"""The tests in a browser, which they all share."""

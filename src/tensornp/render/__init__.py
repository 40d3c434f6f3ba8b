"""Records to text, HTML and figures; no tensor comes here."""

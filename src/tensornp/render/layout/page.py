"""A page that stands alone, around what is shown."""

from __future__ import annotations

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>tensornp</title>
</head>
<body>
{}
</body>
</html>
"""


def page_of(html: str) -> str:
    """Return a page around static HTML, in the colours that the reader's system has."""
    return _PAGE.format(html)

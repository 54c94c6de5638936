"""Views of checked exchanges: output formats, conversations on a terminal, in mitmproxy and as HTML, scorecards."""

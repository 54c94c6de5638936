"""For people's own tests: exchanges that have to be clean, and a real proxy in front of an upstream."""

"""The addon: wirelint inside mitmproxy. The only package that knows mitmproxy, the reader of flow files excepted."""

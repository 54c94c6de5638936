"""The demonstration: a faulty server, a real mitmdump with the addon, real SDKs, and what is found while it happens."""

"""The demonstration: a faulty server, a real mitmdump with the addon, real SDKs; and agents with a faulty vendor."""

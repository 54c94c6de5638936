"""What repairs replies while they pass: rewriters that the rules hand out."""

"""What a reply says was done or found, compared with what the conversation shows."""

"""Claims of replies (actions, finds, denials), compared with the evidence of the conversation."""

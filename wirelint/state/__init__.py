"""State across exchanges: the ledger of a conversation, links between exchanges, the ledger of MCP servers."""

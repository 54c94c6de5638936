"""Arguments of tool calls: JSON text, schemas, placeholders and repairs."""

// Ends the import of link-only.ts before the linked module runs.
throw Symbol.for('mcp-host linked')

export {}

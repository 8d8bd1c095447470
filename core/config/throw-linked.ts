throw Symbol.for('mcp-host linked')

export {}

// The notes toolset, as one module, so that all definitions share one `noteStore`.
// mcp.config.example.ts serves it as `notes`.
export { note, noteIndex, summarizeNotes } from './note-resources.ts'
export { addNote, deleteNote, importNotes, searchTool, updateNote } from './note-tools.ts'

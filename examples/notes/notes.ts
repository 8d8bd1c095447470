// The notes toolset: every definition that these modules export. One module, so that they share one `noteStore`.
// mcp.config.example.ts serves it as `notes`.
export { note, noteIndex, summarizeNotes } from './note-resources.ts'
export { addNote, deleteNote, importNotes, searchTool, updateNote } from './note-tools.ts'

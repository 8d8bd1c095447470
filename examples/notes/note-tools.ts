// Tools that change notes: they tell watchers of a resource, report progress, and ask the user before deleting.
// notes.ts serves them beside the resources.
import { type CallContext, type ContentBlock, defineTool, ToolError } from 'mcp-host'
import { INDEX_URI, noteUri } from './note-resources.ts'
import { noteStore, searchNotes } from './note-store.ts'

const id = {
  type: 'string',
  pattern: '^[0-9]{1,9}$',
  description: "The note's id, as add_note and search_notes give it",
} as const
const fields = {
  title: { type: 'string', minLength: 1, maxLength: 200 },
  text: { type: 'string', maxLength: 10_000, description: 'Markdown' },
  tags: { type: 'array', items: { type: 'string', minLength: 1, maxLength: 40 }, maxItems: 20, uniqueItems: true },
} as const
const draft = { type: 'object', properties: fields, required: ['title', 'text'], additionalProperties: false } as const

const noteOutput = {
  type: 'object',
  properties: {
    id,
    ...fields,
    createdAt: { type: 'string', format: 'date-time' },
    updatedAt: { type: 'string', format: 'date-time' },
  },
  required: ['id', 'title', 'text', 'tags', 'createdAt', 'updatedAt'],
} as const

/** Clients that watch the note, or the index, learn that it changed. */
function announce(ctx: CallContext, id: string): void {
  ctx.host.resourceUpdated(INDEX_URI)
  ctx.host.resourceUpdated(noteUri(id))
}

export const addNote = defineTool({
  name: 'add_note',
  title: 'Add a note',
  description: 'Keeps a new note and returns it with its id.',
  annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
  input: draft,
  output: noteOutput,
  async handler({ title, text, tags = [] }, ctx) {
    const note = await noteStore.add({ title, text, tags })
    announce(ctx, note.id)
    return note
  },
})

export const updateNote = defineTool({
  name: 'update_note',
  title: 'Update a note',
  description: 'Replaces the given fields of a note.',
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  input: {
    type: 'object',
    properties: { id, ...fields },
    required: ['id'],
    minProperties: 2,
    additionalProperties: false,
  },
  output: noteOutput,
  async handler({ id, ...change }, ctx) {
    const note = await noteStore.update(id, change)
    announce(ctx, id)
    return note
  },
})

const MAX_FOUND = 50

export const searchTool = defineTool({
  name: 'search_notes',
  title: 'Search notes',
  description: `Finds notes whose title, text or tags contain the query: the newest ${MAX_FOUND}, newest first.`,
  annotations: { readOnlyHint: true, openWorldHint: false },
  input: {
    type: 'object',
    properties: { query: { type: 'string', maxLength: 200, description: 'Default: every note' } },
    additionalProperties: false,
  },
  output: {
    type: 'object',
    properties: { total: { type: 'integer' }, notes: { type: 'array', items: noteOutput } },
    required: ['total', 'notes'],
  },
  async handler({ query = '' }) {
    const found = searchNotes(await noteStore.all(), query)
    const notes = found.slice(-MAX_FOUND).reverse()
    // A whole result: links for people and models to follow, the same notes as structured content for programs.
    const links = notes.map(
      ({ id, title }): ContentBlock => ({ type: 'resource_link', uri: noteUri(id), name: `note-${id}`, title }),
    )
    const text = found.length === 1 ? '1 note found.' : `${found.length} notes found.`
    return { content: [{ type: 'text', text }, ...links], structuredContent: { total: found.length, notes } }
  },
})

export const deleteNote = defineTool({
  name: 'delete_note',
  title: 'Delete a note',
  description: 'Deletes a note for good, after the user agreed.',
  annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: false },
  input: { type: 'object', properties: { id }, required: ['id'], additionalProperties: false },
  output: {
    type: 'object',
    properties: { deleted: { type: 'boolean', description: 'False: the user did not agree' } },
    required: ['deleted'],
  },
  async handler({ id }, ctx) {
    const note = await noteStore.get(id)
    if (!note) throw new ToolError(`There is no note "${id}".`)
    const answer = await ctx.elicit({
      message: `Delete the note "${note.title}"? This cannot be undone.`,
      requestedSchema: {
        type: 'object',
        properties: { confirm: { type: 'boolean', title: 'Delete it', default: false } },
        required: ['confirm'],
      },
    })
    // A 2026-07-28 client's answer starts this handler from the top again: what changes anything comes after the ask.
    if (answer.action !== 'accept' || answer.content?.['confirm'] !== true) return { deleted: false }
    await noteStore.remove(id)
    announce(ctx, id)
    return { deleted: true }
  },
})

export const importNotes = defineTool({
  name: 'import_notes',
  title: 'Import notes',
  description: 'Adds many notes, one after the other, with progress. When it is cancelled, those added so far stay.',
  annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
  timeout: '1m',
  input: {
    type: 'object',
    properties: { notes: { type: 'array', items: draft, minItems: 1, maxItems: 200 } },
    required: ['notes'],
    additionalProperties: false,
  },
  output: {
    type: 'object',
    properties: { ids: { type: 'array', items: id } },
    required: ['ids'],
  },
  async handler({ notes }, ctx) {
    const ids: string[] = []
    for (const { title, text, tags = [] } of notes) {
      ctx.signal.throwIfAborted()
      const note = await noteStore.add({ title, text, tags })
      ids.push(note.id)
      announce(ctx, note.id)
      ctx.progress(ids.length, notes.length, title)
    }
    ctx.log('info', { imported: ids.length }, 'notes')
    return { ids }
  },
})

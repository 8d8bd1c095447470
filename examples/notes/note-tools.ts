// Tools that search and change notes, with change notifications, progress, and confirmation before deletion.
import { type CallContext, type ContentBlock, defineTool, ToolError } from 'mcp-host'
import { INDEX_URI, noteUri } from './note-resources.ts'
import { noteStore, searchNotes } from './note-store.ts'

const id = {
  type: 'string',
  pattern: '^[0-9]{1,9}$',
  description: 'Id of the note, from add_note or search_notes',
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

/** Notifies clients that subscribed to the note or the index. */
function notifySubscribers(ctx: CallContext, id: string): void {
  ctx.host.resourceUpdated(INDEX_URI)
  ctx.host.resourceUpdated(noteUri(id))
}

export const addNote = defineTool({
  name: 'add_note',
  title: 'Add a note',
  description: 'Adds a note and returns it with its id.',
  annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
  input: draft,
  output: noteOutput,
  async handler({ title, text, tags = [] }, ctx) {
    const note = await noteStore.add({ title, text, tags })
    notifySubscribers(ctx, note.id)
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
    notifySubscribers(ctx, id)
    return note
  },
})

const MAX_RESULTS = 50

export const searchTool = defineTool({
  name: 'search_notes',
  title: 'Search notes',
  description: `Finds notes whose title, text or tags contain the query: the newest ${MAX_RESULTS}, newest first.`,
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
    const notes = found.slice(-MAX_RESULTS).reverse()
    // A complete result: links for users and models, and structured content for programs.
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
  description: 'Deletes a note permanently, after the user confirms.',
  annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: false },
  input: { type: 'object', properties: { id }, required: ['id'], additionalProperties: false },
  output: {
    type: 'object',
    properties: { deleted: { type: 'boolean', description: 'False if the user did not confirm' } },
    required: ['deleted'],
  },
  async handler({ id }, ctx) {
    const note = await noteStore.get(id)
    if (!note) throw new ToolError(`There is no note "${id}".`)
    const response = await ctx.elicit({
      message: `Delete the note "${note.title}"? This cannot be undone.`,
      requestedSchema: {
        type: 'object',
        properties: { confirm: { type: 'boolean', title: 'Delete it', default: false } },
        required: ['confirm'],
      },
    })
    // For 2026-07-28 clients, this handler runs again with the response. Make changes only after the last request.
    if (response.action !== 'accept' || response.content?.['confirm'] !== true) return { deleted: false }
    await noteStore.remove(id)
    notifySubscribers(ctx, id)
    return { deleted: true }
  },
})

export const importNotes = defineTool({
  name: 'import_notes',
  title: 'Import notes',
  description: 'Adds several notes and reports progress. After a cancellation, the notes added so far remain.',
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
      notifySubscribers(ctx, note.id)
      ctx.progress(ids.length, notes.length, title)
    }
    ctx.log('info', { imported: ids.length }, 'notes')
    return { ids }
  },
})

// Notes as resources and a prompt: an index, a template with completion, and a prompt for a summary.
import { definePrompt, defineResource, HostError } from 'mcp-host'
import { type Note, noteStore, searchNotes } from './note-store.ts'

export const INDEX_URI = 'notes://all'
export const noteUri = (id: string) => `notes://note/${id}`

const toMarkdown = ({ title, text, tags }: Note) =>
  [`# ${title}`, text, ...(tags.length > 0 ? [tags.map(tag => `#${tag}`).join(' ')] : [])].join('\n\n')

export const noteIndex = defineResource({
  name: 'all-notes',
  title: 'All notes',
  description: 'Id, title, tags and URI of every note.',
  uri: INDEX_URI,
  mimeType: 'application/json',
  async handler() {
    const notes = await noteStore.all()
    return JSON.stringify(
      notes.map(({ id, title, tags, updatedAt }) => ({ id, title, tags, updatedAt, uri: noteUri(id) })),
    )
  },
})

// A template for all notes. Clients insert the id, with completion.
export const note = defineResource({
  name: 'note',
  title: 'A note',
  uriTemplate: 'notes://note/{id}',
  mimeType: 'text/markdown',
  complete: {
    id: async value => (await noteStore.all()).map(({ id }) => id).filter(id => id.startsWith(value)),
  },
  list: async () => (await noteStore.all()).map(({ id, title }) => ({ uri: noteUri(id), name: id, title })),
  async handler({ id = '' }) {
    const found = await noteStore.get(id)
    // The host sends the error code of the client's protocol version.
    if (!found) throw new HostError('resourceNotFound', { detail: `there is no note "${id}"` })
    return toMarkdown(found)
  },
})

const MAX_EMBEDDED = 20

const completeTag = async (value: string) => {
  const tags = new Set((await noteStore.all()).flatMap(({ tags }) => tags))
  return [...tags].filter(tag => tag.toLowerCase().startsWith(value.toLowerCase())).sort()
}

export const summarizeNotes = definePrompt({
  name: 'summarize_notes',
  title: 'Summarize notes',
  description: 'Requests a summary of the notes about a topic, or of all notes.',
  arguments: {
    topic: { title: 'Topic', description: 'A tag or search text. Default: all notes', complete: completeTag },
  },
  async handler({ topic = '' }) {
    const found = searchNotes(await noteStore.all(), topic)
    const about = topic === '' ? 'my notes' : `my notes about "${topic}"`
    const text =
      found.length === 0
        ? `I wanted a summary of ${about}, but there are none. Tell me so, and offer to write one.`
        : `Summarize ${about} in a few sentences. Group what belongs together and list open questions last.`
    const embedded = found.slice(-MAX_EMBEDDED).map(note => ({
      role: 'user' as const,
      content: {
        type: 'resource' as const,
        resource: { uri: noteUri(note.id), mimeType: 'text/markdown', text: toMarkdown(note) },
      },
    }))
    return { messages: [{ role: 'user', content: { type: 'text', text } }, ...embedded] }
  },
})

// Stores notes in a JSON file, with atomic writes and one writer at a time. Only one process can use the file.
import { randomUUID } from 'node:crypto'
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { ToolError } from 'mcp-host'

export interface NoteDraft {
  title: string
  text: string
  tags: string[]
}

export interface Note extends NoteDraft {
  /** A unique number. Ids of deleted notes are not reused. */
  id: string
  /** ISO 8601. */
  createdAt: string
  /** ISO 8601. */
  updatedAt: string
}

interface NotesFile {
  lastId: number
  notes: Note[]
}

/** Anyone can call a server without a login, so the file size is limited. */
const MAX_NOTES = 1000

export interface NoteStore {
  /** In the order they were added. */
  all(): Promise<Note[]>
  get(id: string): Promise<Note | undefined>
  /** Throws a ToolError if there are already 1,000 notes. */
  add(draft: NoteDraft): Promise<Note>
  /** Throws a ToolError if the note does not exist. */
  update(id: string, change: Partial<NoteDraft>): Promise<Note>
  /** Throws a ToolError if the note does not exist. */
  remove(id: string): Promise<void>
}

async function readNotes(file: string): Promise<NotesFile> {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { lastId: 0, notes: [] }
    throw error
  }
  try {
    const content = JSON.parse(text) as Partial<NotesFile> | null
    if (Number.isInteger(content?.lastId) && Array.isArray(content?.notes)) return content as NotesFile
  } catch {}
  throw new ToolError('The notes file is damaged. Repair or remove it.')
}

async function writeNotes(file: string, content: NotesFile): Promise<void> {
  await mkdir(dirname(file), { recursive: true })
  // A rename is atomic: after a crash there is either the old or the new file.
  const temporary = `${file}.${randomUUID()}.tmp`
  try {
    const handle = await open(temporary, 'wx')
    try {
      await handle.writeFile(`${JSON.stringify(content, null, 2)}\n`)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(temporary, file)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}

function find(notes: readonly Note[], id: string): Note {
  const note = notes.find(note => note.id === id)
  if (!note) throw new ToolError(`There is no note "${id}".`)
  return note
}

/** The file is created on the first change. It is read on each call, so manual edits are used. */
export function createNoteStore(getFile: () => string): NoteStore {
  let lastChange: Promise<unknown> = Promise.resolve()

  /** Runs `edit` after the previous changes. If it throws, the file is not changed. */
  function change<T>(edit: (content: NotesFile) => T): Promise<T> {
    const result = lastChange.then(async () => {
      const file = getFile()
      const content = await readNotes(file)
      const value = edit(content)
      await writeNotes(file, content)
      return value
    })
    // A failed change must not affect the following changes.
    lastChange = result.catch(() => {})
    return result
  }

  return {
    all: async () => (await readNotes(getFile())).notes,
    get: async id => (await readNotes(getFile())).notes.find(note => note.id === id),
    add: draft =>
      change(content => {
        if (content.notes.length >= MAX_NOTES)
          throw new ToolError(`The limit of ${MAX_NOTES} notes is reached. Delete some.`)
        const now = new Date().toISOString()
        const note = { id: String(++content.lastId), ...draft, createdAt: now, updatedAt: now }
        content.notes.push(note)
        return note
      }),
    update: (id, fields) =>
      change(({ notes }) => Object.assign(find(notes, id), fields, { updatedAt: new Date().toISOString() })),
    remove: id =>
      change(content => {
        const deleted = find(content.notes, id)
        content.notes = content.notes.filter(note => note !== deleted)
      }),
  }
}

/** Finds notes whose title, text or tags contain `query`, ignoring case. */
export function searchNotes(notes: readonly Note[], query: string): Note[] {
  const needle = query.trim().toLowerCase()
  return notes.filter(({ title, text, tags }) =>
    [title, text, ...tags].some(part => part.toLowerCase().includes(needle)),
  )
}

/** Uses the file in `NOTES_FILE`. Default: notes.json next to this module. */
export const noteStore = createNoteStore(() => process.env['NOTES_FILE'] ?? join(import.meta.dirname, 'notes.json'))

// Notes in one JSON file: whole or not there, never half written; one writer at a time in this process.
// note-tools.ts and note-resources.ts work on `noteStore`; several processes on one file would need a database.
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
  /** A number in digits, never given twice. */
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

/** Strangers may call an open server: the file must not fill the disk. */
const MAX_NOTES = 1000

export interface NoteStore {
  /** In the order they were added. */
  all(): Promise<Note[]>
  get(id: string): Promise<Note | undefined>
  /** Throws a ToolError when there are 1,000 notes. */
  add(draft: NoteDraft): Promise<Note>
  /** Throws a ToolError when there is no such note. */
  update(id: string, change: Partial<NoteDraft>): Promise<Note>
  /** Throws a ToolError when there is no such note. */
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
  throw new ToolError('The notes file is damaged. It was left as it is; somebody has to repair it or move it away.')
}

async function writeNotes(file: string, content: NotesFile): Promise<void> {
  await mkdir(dirname(file), { recursive: true })
  // A rename is atomic within one folder: whoever reads, or dies, sees the old file or the new one.
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

/** Notes in the file that `locate` names, which need not exist yet. It is read anew each time: edits by hand are seen. */
export function createNoteStore(locate: () => string): NoteStore {
  let lastChange: Promise<unknown> = Promise.resolve()

  /** Runs `edit` after every change before it; what it throws leaves the file as it was. */
  function change<T>(edit: (content: NotesFile) => T): Promise<T> {
    const done = lastChange.then(async () => {
      const file = locate()
      const content = await readNotes(file)
      const result = edit(content)
      await writeNotes(file, content)
      return result
    })
    // A change that failed must not fail those behind it.
    lastChange = done.catch(() => {})
    return done
  }

  return {
    all: async () => (await readNotes(locate())).notes,
    get: async id => (await readNotes(locate())).notes.find(note => note.id === id),
    add: draft =>
      change(content => {
        if (content.notes.length >= MAX_NOTES) throw new ToolError(`There are ${MAX_NOTES} notes already; delete some.`)
        const now = new Date().toISOString()
        const note = { id: String(++content.lastId), ...draft, createdAt: now, updatedAt: now }
        content.notes.push(note)
        return note
      }),
    update: (id, fields) =>
      change(({ notes }) => Object.assign(find(notes, id), fields, { updatedAt: new Date().toISOString() })),
    remove: id =>
      change(content => {
        const gone = find(content.notes, id)
        content.notes = content.notes.filter(note => note !== gone)
      }),
  }
}

/** Notes whose title, text or tags contain `query`, whatever its case. */
export function searchNotes(notes: readonly Note[], query: string): Note[] {
  const wanted = query.trim().toLowerCase()
  return notes.filter(({ title, text, tags }) =>
    [title, text, ...tags].some(part => part.toLowerCase().includes(wanted)),
  )
}

/** The notes of this example: in `NOTES_FILE`, or in notes.json beside this file. */
export const noteStore = createNoteStore(() => process.env['NOTES_FILE'] ?? join(import.meta.dirname, 'notes.json'))

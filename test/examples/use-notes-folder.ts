// A temporary notes folder for each test, set by NOTES_FILE, and helpers to add and list notes.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ResourceDefinition } from 'mcp-host'
import { testResource } from 'mcp-host/testing'
import type { Note } from '../../examples/notes/note-store.ts'
import { addNote, noteIndex } from '../../examples/notes/notes.ts'
import { callTool } from './call-tool.ts'

/** Gives each test of the suite a folder; `folder` is the current one. Other suites find `NOTES_FILE` as it was. */
export function useNotesFolder(): { folder: string } {
  const current = { folder: '' }
  let before: string | undefined
  beforeEach(async () => {
    before = process.env['NOTES_FILE']
    current.folder = await mkdtemp(join(tmpdir(), 'mcp-host-notes-'))
    process.env['NOTES_FILE'] = join(current.folder, 'notes.json')
  })
  afterEach(async () => {
    if (before === undefined) delete process.env['NOTES_FILE']
    else process.env['NOTES_FILE'] = before
    await rm(current.folder, { recursive: true })
  })
  return current
}

export const read = async (resource: ResourceDefinition, uri?: string) => (await testResource(resource, uri)).text

export const listNotes = async (): Promise<Note[]> => JSON.parse(await read(noteIndex))

export const add = (fields: object = {}) => callTool<Note>(addNote, { title: 'Milk', text: 'Buy milk.', ...fields })

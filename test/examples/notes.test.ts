// Tests the tools, resources and prompt of the notes example, with confirmation of deletes and notifications.
import { expect } from 'chai'
import { type CallContext, HostError } from 'mcp-host'
import { testPrompt, testTool } from 'mcp-host/testing'
import type { Note } from '../../examples/notes/note-store.ts'
import * as notes from '../../examples/notes/notes.ts'
import { callTool, rejectionOf } from './call-tool.ts'
import { add, listNotes, read, useNotesFolder } from './use-notes-folder.ts'

const changed = (...uris: string[]) => uris.map(uri => ({ changed: 'resource' as const, uri }))
/** Completers here have no use for it. */
const context = {} as CallContext

describe('examples/notes', () => {
  useNotesFolder()

  describe('tools', () => {
    it('add_note stores the note and notifies subscribers of the index and the note', async () => {
      const note = { title: 'Milk', text: 'Buy milk.', tags: ['food'] }
      const { structured, changes } = await testTool(notes.addNote, note)
      expect(structured).to.deep.include({ ...note, id: '1' })
      expect(changes).to.deep.equal(changed('notes://all', 'notes://note/1'))
    })

    it('update_note replaces only the given fields', async () => {
      const { id, createdAt } = await add({ tags: ['food'] })
      const { structured, changes } = await testTool(notes.updateNote, { id, text: 'Buy oat milk.' })
      expect(structured).to.deep.include({ id, createdAt, title: 'Milk', text: 'Buy oat milk.', tags: ['food'] })
      expect(changes).to.deep.equal(changed('notes://all', `notes://note/${id}`))
    })

    it('update_note rejects an unknown note without a notification', async () => {
      const { isError, error, changes } = await testTool(notes.updateNote, { id: '9', text: '' })
      expect({ isError, error, changes }).to.deep.equal({ isError: true, error: undefined, changes: [] })
    })

    it('search_notes finds words in title, text and tags, newest first', async () => {
      await add({ title: 'Quarterly PLAN' })
      await add({ title: 'Two', text: 'nothing here' })
      await add({ title: 'Three', text: 'the plan changed' })
      await add({ title: 'Four', tags: ['planning'] })
      const found = await callTool<{ total: number; notes: Note[] }>(notes.searchTool, { query: 'plan' })
      expect(found.notes.map(({ id }) => id)).to.deep.equal(['4', '3', '1'])
      expect(found.total).to.equal(3)
    })

    it('search_notes links to the resources of its results', async () => {
      await add()
      const { result } = await testTool(notes.searchTool)
      expect(result).to.have.nested.property('content[1].uri', 'notes://note/1')
    })

    it('delete_note requests confirmation (elicitation) with the title', async () => {
      const { id } = await add({ title: 'Old plan' })
      const answers = [{ action: 'accept', content: { confirm: true } }] as const
      const { structured, asks, changes } = await testTool(notes.deleteNote, { id }, { answers })
      expect(structured).to.deep.equal({ deleted: true })
      expect(asks[0]?.params).to.have.property('message').that.contains('Old plan')
      expect(changes).to.deep.equal(changed('notes://all', `notes://note/${id}`))
      expect(await listNotes()).to.deep.equal([])
    })

    const refusals = [
      { action: 'decline' },
      { action: 'cancel' },
      { action: 'accept', content: { confirm: false } },
    ] as const
    for (const answer of refusals) {
      it(`delete_note keeps the note for the answer ${JSON.stringify(answer)}`, async () => {
        const { id } = await add()
        const { structured, changes } = await testTool(notes.deleteNote, { id }, { answers: [answer] })
        expect({ structured, changes }).to.deep.equal({ structured: { deleted: false }, changes: [] })
        expect(await listNotes()).to.have.lengthOf(1)
      })
    }

    it('delete_note keeps the note if the client does not support elicitation', async () => {
      const { id } = await add()
      await rejectionOf(testTool(notes.deleteNote, { id }, { capabilities: {} }))
      expect(await listNotes()).to.have.lengthOf(1)
    })

    it('delete_note skips confirmation for an unknown note', async () => {
      const { isError, asks } = await testTool(notes.deleteNote, { id: '9' })
      expect({ isError, asks }).to.deep.equal({ isError: true, asks: [] })
    })

    it('import_notes reports progress per note and returns the ids in order', async () => {
      const batch = ['a', 'b', 'c'].map(title => ({ title, text: '' }))
      const { structured, progress } = await testTool(notes.importNotes, { notes: batch })
      expect(structured).to.deep.equal({ ids: ['1', '2', '3'] })
      expect(progress).to.deep.equal([
        { progress: 1, total: 3, message: 'a' },
        { progress: 2, total: 3, message: 'b' },
        { progress: 3, total: 3, message: 'c' },
      ])
    })

    it('import_notes stops on cancellation and keeps the imported notes', async () => {
      const cancelling = new AbortController()
      const batch = ['a', 'b', 'c'].map(title => ({ title, text: '' }))
      const onProgress = ({ progress }: { progress: number }) => void (progress === 2 && cancelling.abort())
      const { isError } = await testTool(notes.importNotes, { notes: batch }, { signal: cancelling.signal, onProgress })
      expect(isError).to.equal(true)
      expect((await listNotes()).map(({ title }) => title)).to.deep.equal(['a', 'b'])
    })

    it('reject fields that the schema does not define', async () => {
      expect(await rejectionOf(add({ id: '5' }))).to.be.instanceOf(TypeError)
      expect(await rejectionOf(callTool(notes.updateNote, { id: '1' }))).to.be.instanceOf(TypeError)
    })
  })

  describe('resources', () => {
    it('notes://all lists every note with its URI', async () => {
      await add()
      expect((await listNotes()).map(entry => ({ ...entry, updatedAt: '' }))).to.deep.equal([
        { id: '1', title: 'Milk', tags: [], updatedAt: '', uri: 'notes://note/1' },
      ])
    })

    it('notes://note/{id} returns the note as Markdown', async () => {
      const { id } = await add({ tags: ['food', 'shop'] })
      expect(await read(notes.note, `notes://note/${id}`)).to.equal('# Milk\n\nBuy milk.\n\n#food #shop')
    })

    it('lists each note', async () => {
      const { id } = await add({ title: 'Milk' })
      expect(await notes.note.list?.(context)).to.deep.equal([{ uri: `notes://note/${id}`, name: id, title: 'Milk' }])
    })

    it('notes://note/{id} is not found for an unknown id', async () => {
      const error = await rejectionOf(read(notes.note, 'notes://note/9'))
      expect(HostError.is(error) && error.kind).to.equal('resourceNotFound')
    })

    it('complete existing ids', async () => {
      for (let n = 0; n < 11; n++) await add()
      expect(await notes.note.complete?.['id']?.('1', { arguments: {} }, context)).to.deep.equal(['1', '10', '11'])
      expect(await notes.note.complete?.['id']?.('x', { arguments: {} }, context)).to.deep.equal([])
    })
  })

  describe('prompt summarize_notes', () => {
    it('embeds the notes about the topic', async () => {
      await add({ title: 'Bread' })
      await add({ tags: ['dairy'] })
      const { messages } = (await testPrompt(notes.summarizeNotes, { topic: 'dairy' })).result
      expect(messages.map(({ content }) => content.type)).to.deep.equal(['text', 'resource'])
      expect(messages[1]?.content).to.have.nested.property('resource.uri', 'notes://note/2')
    })

    it('reports that there is nothing to summarize', async () => {
      const { messages } = (await testPrompt(notes.summarizeNotes, { topic: 'dairy' })).result
      expect(messages).to.have.lengthOf(1)
      expect(messages[0]?.content).to.have.property('text').that.contains('there are none')
    })

    it('completes topics from distinct tags', async () => {
      await add({ tags: ['dairy', 'shop'] })
      await add({ tags: ['Dairy farm', 'dairy'] })
      const { topic } = notes.summarizeNotes.arguments ?? {}
      expect(await topic?.complete?.('da', { arguments: {} }, context)).to.deep.equal(['Dairy farm', 'dairy'])
    })
  })
})

// The notes example's tools, resources and prompt: nothing is deleted unasked, and every change is announced.
import { expect } from 'chai'
import { type GetPromptResult, HostError, type PromptDefinition, ToolError } from 'mcp-host'
import type { Note } from '../../examples/notes/note-store.ts'
import * as notes from '../../examples/notes/notes.ts'
import { callTool, createContext, rejectionOf } from './call-tool.ts'
import { add, listNotes, read, useNotesFolder } from './use-notes-folder.ts'

const getPrompt = async (prompt: PromptDefinition, args: unknown) =>
  (await prompt.handler(args as never, createContext().context)) as GetPromptResult

describe('examples/notes', () => {
  useNotesFolder()

  describe('tools', () => {
    it('add_note keeps the note and tells those who watch the index or the note', async () => {
      const context = createContext()
      const { id, title, tags } = await add({ tags: ['food'] }, context)
      expect({ id, title, tags }).to.deep.equal({ id: '1', title: 'Milk', tags: ['food'] })
      expect(context.recorded.updated).to.deep.equal(['notes://all', 'notes://note/1'])
    })

    it('update_note replaces the fields it is given and no other', async () => {
      const { id, createdAt } = await add({ tags: ['food'] })
      const context = createContext()
      const updated = await callTool<Note>(notes.updateNote, { id, text: 'Buy oat milk.' }, context)
      expect(updated).to.include({ id, createdAt, title: 'Milk', text: 'Buy oat milk.' })
      expect(updated.tags).to.deep.equal(['food'])
      expect(context.recorded.updated).to.deep.equal(['notes://all', `notes://note/${id}`])
    })

    it('update_note refuses a note that does not exist and announces nothing', async () => {
      const context = createContext()
      expect(await rejectionOf(callTool(notes.updateNote, { id: '9', text: '' }, context))).to.be.instanceOf(ToolError)
      expect(context.recorded.updated).to.deep.equal([])
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

    it('search_notes links to the resources of what it finds', async () => {
      await add()
      const result = await notes.searchTool.handler({} as never, createContext().context)
      expect(result).to.have.nested.property('content[1].uri', 'notes://note/1')
    })

    it('delete_note asks before it deletes, with the title in the question', async () => {
      const { id } = await add({ title: 'Old plan' })
      const context = createContext({ answer: { action: 'accept', content: { confirm: true } } })
      expect(await callTool(notes.deleteNote, { id }, context)).to.deep.equal({ deleted: true })
      expect(context.recorded.asked.map(({ message }) => message).join()).to.contain('Old plan')
      expect(context.recorded.updated).to.deep.equal(['notes://all', `notes://note/${id}`])
      expect(await listNotes()).to.deep.equal([])
    })

    const refusals = [
      { action: 'decline' },
      { action: 'cancel' },
      { action: 'accept', content: { confirm: false } },
      { action: 'accept', content: {} },
    ] as const
    for (const answer of refusals) {
      it(`delete_note keeps the note when the answer is ${JSON.stringify(answer)}`, async () => {
        const { id } = await add()
        const context = createContext({ answer })
        expect(await callTool(notes.deleteNote, { id }, context)).to.deep.equal({ deleted: false })
        expect(await listNotes()).to.have.lengthOf(1)
        expect(context.recorded.updated).to.deep.equal([])
      })
    }

    it('delete_note keeps the note when nobody can be asked', async () => {
      const { id } = await add()
      await rejectionOf(callTool(notes.deleteNote, { id }))
      expect(await listNotes()).to.have.lengthOf(1)
    })

    it('delete_note asks nothing about a note that does not exist', async () => {
      const context = createContext()
      expect(await rejectionOf(callTool(notes.deleteNote, { id: '9' }, context))).to.be.instanceOf(ToolError)
      expect(context.recorded.asked).to.deep.equal([])
    })

    it('import_notes reports each note and returns the ids in order', async () => {
      const context = createContext()
      const batch = ['a', 'b', 'c'].map(title => ({ title, text: '' }))
      expect(await callTool(notes.importNotes, { notes: batch }, context)).to.deep.equal({ ids: ['1', '2', '3'] })
      expect(context.recorded.progress).to.deep.equal([
        [1, 3, 'a'],
        [2, 3, 'b'],
        [3, 3, 'c'],
      ])
    })

    it('import_notes stops when it is cancelled and keeps what it has', async () => {
      const cancelling = new AbortController()
      const context = createContext({ signal: cancelling.signal })
      const stopping = {
        ...context,
        context: { ...context.context, progress: (done: number) => void (done === 2 && cancelling.abort()) },
      }
      const batch = ['a', 'b', 'c'].map(title => ({ title, text: '' }))
      await rejectionOf(callTool(notes.importNotes, { notes: batch }, stopping))
      expect((await listNotes()).map(({ title }) => title)).to.deep.equal(['a', 'b'])
    })

    it('take no field that the schema does not name', async () => {
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

    it('notes://note/{id} is the note as Markdown', async () => {
      const { id } = await add({ tags: ['food', 'shop'] })
      expect(await read(notes.note, { id })).to.equal('# Milk\n\nBuy milk.\n\n#food #shop')
    })

    it('notes://note/{id} is a resource not found for an id that is not there', async () => {
      const error = await rejectionOf(read(notes.note, { id: '9' }))
      expect(HostError.is(error) && error.kind).to.equal('resourceNotFound')
    })

    it('completes the ids that there are', async () => {
      for (let n = 0; n < 11; n++) await add()
      const { context } = createContext()
      expect(await notes.note.complete?.['id']?.('1', { arguments: {} }, context)).to.deep.equal(['1', '10', '11'])
      expect(await notes.note.complete?.['id']?.('x', { arguments: {} }, context)).to.deep.equal([])
    })
  })

  describe('the prompt summarize_notes', () => {
    it('embeds the notes about its topic', async () => {
      await add({ title: 'Bread' })
      await add({ tags: ['dairy'] })
      const { messages } = await getPrompt(notes.summarizeNotes, { topic: 'dairy' })
      expect(messages.map(({ content }) => content.type)).to.deep.equal(['text', 'resource'])
      expect(messages[1]?.content).to.have.nested.property('resource.uri', 'notes://note/2')
    })

    it('says so when there is nothing to summarize', async () => {
      const { messages } = await getPrompt(notes.summarizeNotes, { topic: 'dairy' })
      expect(messages).to.have.lengthOf(1)
      expect(messages[0]?.content).to.have.property('text').that.contains('there are none')
    })

    it('completes topics from the tags in use, each once', async () => {
      await add({ tags: ['dairy', 'shop'] })
      await add({ tags: ['Dairy farm', 'dairy'] })
      const { topic } = notes.summarizeNotes.arguments ?? {}
      expect(await topic?.complete?.('da', { arguments: {} }, createContext().context)).to.deep.equal([
        'Dairy farm',
        'dairy',
      ])
    })
  })
})

// The notes example's file: nothing is lost and nothing is half written, whoever reads, fails or dies.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect } from 'chai'
import { ToolError } from 'mcp-host'
import { deleteNote, updateNote } from '../../examples/notes/notes.ts'
import { compiledFile } from '../support/compiled.ts'
import { callTool, rejectionOf } from './call-tool.ts'
import { add, listNotes, useNotesFolder } from './use-notes-folder.ts'

describe('examples/notes: the file', () => {
  const place = useNotesFolder()
  const file = () => join(place.folder, 'notes.json')

  it('loses none of 50 notes added at once, gives each its own id, and leaves nothing else behind', async () => {
    const added = await Promise.all(Array.from({ length: 50 }, (_, n) => add({ title: `Note ${n}` })))
    expect(new Set(added.map(({ id }) => id))).to.have.lengthOf(50)
    expect((await listNotes()).map(({ title }) => title)).to.deep.equal(added.map(({ title }) => title))
    expect(await readdir(place.folder)).to.deep.equal(['notes.json'])
  })

  it('loses no change when adding, updating and deleting mix', async () => {
    const ids = (await Promise.all(Array.from({ length: 10 }, () => add()))).map(({ id }) => id)
    const agreeing = { answers: [{ action: 'accept', content: { confirm: true } }] } as const
    await Promise.all(
      ids.flatMap(id => [
        add({ title: 'Later' }),
        Number(id) % 2 === 0
          ? callTool(updateNote, { id, title: `Changed ${id}` })
          : callTool(deleteNote, { id }, agreeing),
      ]),
    )
    const kept = (await listNotes()).map(({ title }) => title)
    expect(kept.filter(title => title !== 'Later')).to.deep.equal([
      'Changed 2',
      'Changed 4',
      'Changed 6',
      'Changed 8',
      'Changed 10',
    ])
    expect(kept.filter(title => title === 'Later')).to.have.lengthOf(10)
  })

  it('is whole at every moment for whoever reads it', async () => {
    await add()
    let writing = true
    const adding = Promise.all(Array.from({ length: 50 }, () => add({ text: 'x'.repeat(10_000) }))).finally(() => {
      writing = false
    })
    try {
      while (writing) expect(JSON.parse(await readFile(file(), 'utf8'))).to.have.property('notes')
    } finally {
      await adding
    }
  })

  it('has every acknowledged note after a kill -9 in the middle of writing', async () => {
    const child = spawn(process.execPath, [compiledFile('test/examples/add-notes.ts'), file()], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const gone = once(child, 'exit')
    const acknowledged: string[] = []
    for await (const id of createInterface({ input: child.stdout })) {
      acknowledged.push(id)
      if (acknowledged.length === 20) child.kill('SIGKILL')
    }
    await gone
    expect(acknowledged).to.have.length.at.least(20)
    expect((await listNotes()).map(({ id }) => id)).to.include.members(acknowledged)
    expect(Number((await add()).id)).to.be.greaterThan(acknowledged.length)
  })

  it('is left as it is when it is damaged, and used again once it is repaired', async () => {
    for (const damage of ['{ "lastId": 1, "no', '[]', 'null', '']) {
      await writeFile(file(), damage)
      expect(await rejectionOf(add()), damage).to.be.instanceOf(ToolError)
      expect(await readFile(file(), 'utf8')).to.equal(damage)
    }
    await writeFile(file(), '{ "lastId": 6, "notes": [] }')
    expect((await add()).id).to.equal('7')
  })

  it('is made with its folder by the first note', async () => {
    process.env['NOTES_FILE'] = join(place.folder, 'deep', 'down', 'notes.json')
    expect(await listNotes()).to.deep.equal([])
    await add()
    expect(await listNotes()).to.have.lengthOf(1)
  })

  it('holds 1,000 notes and no more', async () => {
    const full = Array.from({ length: 1000 }, (_, n) => ({ id: String(n), title: '', text: '', tags: [] }))
    await writeFile(file(), JSON.stringify({ lastId: 1000, notes: full }))
    expect(await rejectionOf(add())).to.be.instanceOf(ToolError)
  })
})

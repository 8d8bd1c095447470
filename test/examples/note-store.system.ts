// Tests the file of the notes example: atomic writes, concurrency, crashes and limits.
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

describe('examples/notes: file store', () => {
  const place = useNotesFolder()
  const file = () => join(place.folder, 'notes.json')

  it('keeps 50 concurrently added notes with unique ids and no temporary files', async () => {
    const added = await Promise.all(Array.from({ length: 50 }, (_, n) => add({ title: `Note ${n}` })))
    expect(new Set(added.map(({ id }) => id))).to.have.lengthOf(50)
    expect((await listNotes()).map(({ title }) => title)).to.deep.equal(added.map(({ title }) => title))
    expect(await readdir(place.folder)).to.deep.equal(['notes.json'])
  })

  it('keeps all changes of concurrent adds, updates and deletes', async () => {
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

  it('is readable and complete at any time during writes', async () => {
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

  it('keeps every acknowledged note after kill -9 during a write', async () => {
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

  it('leaves a damaged file unchanged and uses it again after repair', async () => {
    for (const damage of ['{ "lastId": 1, "no', '[]', 'null', '']) {
      await writeFile(file(), damage)
      expect(await rejectionOf(add()), damage).to.be.instanceOf(ToolError)
      expect(await readFile(file(), 'utf8')).to.equal(damage)
    }
    await writeFile(file(), '{ "lastId": 6, "notes": [] }')
    expect((await add()).id).to.equal('7')
  })

  it('creates the file and its folder with the first note', async () => {
    process.env['NOTES_FILE'] = join(place.folder, 'deep', 'down', 'notes.json')
    expect(await listNotes()).to.deep.equal([])
    await add()
    expect(await listNotes()).to.have.lengthOf(1)
  })

  it('is limited to 1,000 notes', async () => {
    const full = Array.from({ length: 1000 }, (_, n) => ({ id: String(n), title: '', text: '', tags: [] }))
    await writeFile(file(), JSON.stringify({ lastId: 1000, notes: full }))
    expect(await rejectionOf(add())).to.be.instanceOf(ToolError)
  })
})

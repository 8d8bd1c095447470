// Tests the type errors that `mcp-host dev` prints with the compiler of the project.
import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { createTypeCheck } from '../../cli/dev/type-check.ts'
import { makeFolder, removeFolders, replaceFile } from '../config/folder.ts'
import { eventually } from '../support/eventually.ts'
import { ROOT } from './run-cli.ts'

after(removeFolders)

const PROJECT =
  '{ "compilerOptions": { "strict": true, "module": "nodenext", "noEmit": true, "types": [] }, "include": ["*.ts"] }'
const WRONG = "export const word: number = 'one'\n"
const FILES = { 'tsconfig.json': PROJECT, 'word.ts': WRONG }

describe('type errors of a project', () => {
  it('are printed with file, line and column, and once when they are fixed', async () => {
    const folder = await makeFolder(FILES)
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
    const said: string[] = []
    const check = createTypeCheck(
      folder,
      () => [join(folder, 'word.ts')],
      line => said.push(line),
    )
    const saidAfter = async (count: number) =>
      eventually(
        `${count} lines`,
        () => said,
        lines => lines.length >= count,
        40_000,
      )
    check.run()
    await saidAfter(1)
    expect(said).to.deep.equal(["types: word.ts:1:14  Type 'string' is not assignable to type 'number'. (TS2322)"])
    await replaceFile(join(folder, 'word.ts'), "export const word: string = 'one'\n")
    check.run()
    // The check that runs is overtaken by the next: one answer.
    check.run()
    await saidAfter(2)
    await replaceFile(join(folder, 'word.ts'), WRONG)
    check.run()
    await saidAfter(3)
    expect(said.slice(1)).to.deep.equal(['types: fine again', said[0]])
    check.end()
  })

  it('are not checked without TypeScript, a tsconfig or a compiler; the last is reported once', async () => {
    const said: string[] = []
    const say = (line: string) => void said.push(line)
    const without = await makeFolder({ 'word.ts': WRONG })
    createTypeCheck(without, () => [join(without, 'word.ts')], say).run()
    const folder = await makeFolder(FILES)
    createTypeCheck(folder, () => [join(folder, 'word.js')], say).run()
    expect(said).to.deep.equal([])
    const check = createTypeCheck(folder, () => [join(folder, 'word.ts')], say)
    check.run()
    check.run()
    expect(said).to.deep.equal(['types are not checked: npm install --save-dev typescript'])
  })
})

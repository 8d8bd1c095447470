// Tests lock files that could hang or crash `mcp-host diff` or control its terminal.
import { execFileSync } from 'node:child_process'
import { symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { compareSurfaces } from '../../cli/lock/compare-surfaces.ts'
import { lockText, readLock } from '../../cli/lock/lock-file.ts'
import { SURFACE_FORMAT, type Surface } from '../../cli/lock/surface.ts'
import type { JsonObject } from '../../core/index.ts'
import { withHash } from '../../plugins/families/canonical-json/index.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { runCli, stopAll } from './in-process.ts'

after(removeFolders)
after(stopAll)

function lockOf(
  shown: object,
  { atRunTime = [] as string[], needs = [] as string[], format = SURFACE_FORMAT as number } = {},
) {
  const facts = {
    route: '/',
    needs: [],
    revisions: [],
    transports: [],
    stateless: false,
    listen: true,
    capabilities: {},
  }
  const prompts = { a: withHash({ needs, shown: shown as JsonObject }) }
  const route = withHash({ ...facts, tools: {}, resources: {}, resourceTemplates: {}, prompts })
  return withHash({ format, server: { name: 'x' }, atRunTime, routes: { '/': route } }) as unknown as Surface
}

describe('a malicious lock', () => {
  it('does not hang commands: a link to an endless device, and a pipe without a writer', async () => {
    const folder = await makeFolder({ 'sound.json': lockText(lockOf({})) })
    await symlink('/dev/zero', join(folder, 'zero.json'))
    execFileSync('mkfifo', [join(folder, 'pipe.json')])
    for (const name of ['zero.json', 'pipe.json']) {
      const { code, stderr } = await runCli(['diff', name, 'sound.json'], folder)
      expect([code, stderr]).to.deep.equal([
        2,
        `mcp-host: error MH3001: ${name} is not a file; - reads the lock from stdin\n`,
      ])
    }
  })

  it('prints no control characters in names of items that are decided at run time', async () => {
    const evil = '\u001b[2Jold.json and new.json are equal.'
    const folder = await makeFolder({ 'old.json': lockText(lockOf({})) })
    await writeFile(join(folder, 'new.json'), JSON.stringify(lockOf({}, { atRunTime: [evil] })))
    const { code, stdout, stderr } = await runCli(['diff', 'old.json', 'new.json'], folder)
    expect([code, stdout]).to.deep.equal([2, ''])
    expect(stderr)
      .to.match(/new\.json/)
      .and.not.to.contain('\u001b')
  })

  it('of an older version is reported with the command to run', () => {
    const text = JSON.stringify(lockOf({}, { format: 1 }))
    expect(() => readLock(text, 'mcp.lock.json')).to.throw(
      'mcp.lock.json has the format 1, and this version reads 2; write it again with `mcp-host lock`',
    )
  })

  it('is compared in linear time: enum values and requests', () => {
    const valued = (prefix: string) => ({
      properties: { q: { enum: Array.from({ length: 100_000 }, (_, at) => prefix + at) } },
    })
    const list = (prefix: string) => Array.from({ length: 100_000 }, (_, at) => prefix + at)
    const sides = ['a', 'b'].map(prefix => lockOf({ inputSchema: valued(prefix) }, { needs: list(prefix) }))
    expect(compareSurfaces(sides[0] as Surface, sides[1] as Surface)).to.have.lengthOf.above(1)
  })

  it('has invalid arguments', () => {
    const changes = compareSurfaces(lockOf({ arguments: [null, 3] }), lockOf({ arguments: [{ name: 'x' }] }))
    expect(changes.map(({ what }) => what)).to.deep.equal(['argument "x": added'])
  })
})

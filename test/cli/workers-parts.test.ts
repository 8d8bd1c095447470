// Parts of `start --workers` without a process: files of the config, kept metrics, the back-off, the number of workers.
import { rm, writeFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { differingFiles, readConfigFiles } from '../../cli/workers/config-files.ts'
import { parseCount } from '../../cli/workers/count.ts'
import { createLasting } from '../../cli/workers/every-process.ts'
import { createBackOff, LONGEST_WAIT, STABLE_TIME } from '../../cli/workers/seat.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'

after(removeFolders)

describe('the files of a config', () => {
  it('are those that it names, and what they import by relative paths, whatever the form', async () => {
    const folder = await makeFolder({
      'mcp.config.ts': "import { a } from './a.js'\nexport { b } from \"./deep\"\nconst c = require('./c')\n",
      'a.ts': "import('./d.mjs')\nimport fs from 'node:fs'\nimport './gone.js'",
      'deep/index.ts': "import '../a.js'",
      'c.json': '{}',
      'd.mjs': '',
      'unrelated.ts': '',
    })
    const files = await readConfigFiles([join(folder, 'mcp.config.ts')])
    expect(Object.keys(files).sort()).to.deep.equal(['a.ts', 'c.json', 'd.mjs', 'deep/index.ts', 'mcp.config.ts'])
    await writeFile(join(folder, 'd.mjs'), 'changed')
    await rm(join(folder, 'c.json'))
    const later = await readConfigFiles([join(folder, 'mcp.config.ts')])
    expect(differingFiles([files, later])).to.deep.equal(['c.json', 'd.mjs'])
    expect(differingFiles([files, files])).to.deep.equal([])
  })
})

describe('what outlasts a worker', () => {
  it('is its last, as long as it is silent, and a part of the whole when it ended', () => {
    const lasting = createLasting()
    lasting.keep('metrics', 1, { lasting: { a: 1, b: 2 } })
    lasting.keep('metrics', 2, { lasting: { a: 10 } })
    lasting.keep('other', 1, { sessions: 3 })
    expect(lasting.without('metrics', new Set([1, 2]))).to.deep.equal([])
    expect(lasting.without('metrics', new Set([1]))).to.deep.equal([{ lasting: { a: 10 } }])
    lasting.ended(1)
    lasting.ended(2)
    lasting.keep('metrics', 3, { lasting: { a: 100 } })
    expect(lasting.without('metrics', new Set([3]))).to.deep.equal([{ lasting: { a: 11, b: 2 } }])
    expect(lasting.without('other', new Set([1]))).to.deep.equal([])
  })
})

describe('the wait before a worker is started again', () => {
  it('doubles from 100 ms to 30 s and stays there', () => {
    const backOff = createBackOff()
    const waits = [...Array(12)].map(() => backOff.next(0))
    expect(waits.slice(0, 4)).to.deep.equal([100, 200, 400, 800])
    expect(waits.slice(-3)).to.deep.equal([LONGEST_WAIT, LONGEST_WAIT, LONGEST_WAIT])
  })

  it('begins anew after a worker that served for a while', () => {
    const backOff = createBackOff()
    for (let end = 0; end < 5; end++) backOff.next(STABLE_TIME - 1)
    expect([backOff.next(STABLE_TIME), backOff.next(0)]).to.deep.equal([100, 200])
  })
})

describe('the number of workers', () => {
  it('is 1 to 1024, or auto for one per core', () => {
    for (const count of ['0', '-1', '1.5', 'many', '3000', '']) {
      expect(() => parseCount(count)).to.throw(`--workers ${count}: give a number from 1 to 1024, or "auto"`)
    }
    expect([parseCount('1'), parseCount('1024'), parseCount('auto')]).to.deep.equal([1, 1024, availableParallelism()])
  })
})

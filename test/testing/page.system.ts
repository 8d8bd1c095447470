// Tests the examples of docs/testing.md with node:test in a separate process, which must exit with a host left open.
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { compiledUrl } from '../support/compiled.ts'
import { readExamples } from '../support/page-examples.ts'

const ROOT = join(import.meta.dirname, '../..')
const run = promisify(execFile)
const { compilerOptions } = JSON.parse(readFileSync(join(ROOT, 'tsconfig.json'), 'utf8')) as {
  compilerOptions: { paths: Record<string, [file: string]> }
}

/** What it imports from the package comes compiled, which starts sooner. */
const compiled = (text: string): string =>
  Object.entries(compilerOptions.paths).reduce(
    (code, [entry, [file]]) => code.replaceAll(`'${entry}'`, JSON.stringify(compiledUrl(file.replace('./', '')))),
    text,
  )

const LEFT_OPEN = `
import { test } from 'node:test'
import { testHost } from 'mcp-host/testing'
import config from './mcp.config.ts'
test('leaves its host open', async () => {
  await (await fetch((await testHost(config)).url)).text()
})
`

describe('Examples of docs/testing.md', () => {
  const folder = mkdtempSync(join(import.meta.dirname, 'blocks-'))
  after(() => rmSync(folder, { recursive: true, force: true }))

  it('pass, and the process exits', async () => {
    const files = [...readExamples('testing.md'), { file: 'left-open.test.ts', text: LEFT_OPEN }]
    for (const { file, text } of files) writeFileSync(join(folder, file), compiled(text))
    const tests = files.filter(({ file }) => file.endsWith('.test.ts'))
    writeFileSync(join(folder, 'all.ts'), tests.map(({ file }) => `import './${file}'\n`).join(''))
    const { NODE_OPTIONS: _, ...env } = process.env
    const told = await run(process.execPath, ['--import', 'tsx', join(folder, 'all.ts')], { cwd: ROOT, env }).catch(
      (failed: { stdout: string; stderr: string }) => failed,
    )
    expect(told.stdout, told.stdout + told.stderr).to.match(/^. fail 0$/m)
    const titles = tests.flatMap(({ text }) => [...text.matchAll(/^test\('/gm)])
    expect(told.stdout).to.include(` pass ${titles.length}\n`)
  })
})

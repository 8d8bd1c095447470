// Tests the error messages of `mcp-host check` with a table of common mistakes: location, cause and fix.
import { join } from 'node:path'
import { expect } from 'chai'
import { reportOn } from '../../cli/check.ts'
import type { ReportedProblem } from '../../cli/render.ts'
import { makeFolder, removeFolders } from './folder.ts'
import { AUTH_ROWS } from './mistakes/auth.ts'
import { DEFINITION_ROWS } from './mistakes/definitions.ts'
import { FILE_ROWS } from './mistakes/files.ts'
import { FOREIGN_ROWS } from './mistakes/foreign.ts'
import { IMPORT_ROWS } from './mistakes/imports.ts'
import { PLUGIN_ROWS } from './mistakes/plugins.ts'
import { POLICY_ROWS } from './mistakes/policies.ts'
import { ROUTE_ROWS } from './mistakes/routes.ts'
import { GOOD_TOOL, type Row, tools, yaml } from './mistakes/row.ts'
import { SHAPE_ROWS } from './mistakes/shape.ts'
import { VALUE_ROWS } from './mistakes/values.ts'

const TABLE: Readonly<Record<string, readonly Row[]>> = {
  'the shape of a config': SHAPE_ROWS,
  files: FILE_ROWS,
  imports: IMPORT_ROWS,
  'routes and toolsets': ROUTE_ROWS,
  'tools, resources and prompts': DEFINITION_ROWS,
  'names from other frameworks': FOREIGN_ROWS,
  plugins: PLUGIN_ROWS,
  policies: POLICY_ROWS,
  authentication: AUTH_ROWS,
  'values that can never work': VALUE_ROWS,
}

/** The place that a row must be told at: `file:line`, or a file. */
function placeOf({ files, at }: Row): string | undefined {
  if (at !== undefined) return at
  for (const [name, text] of Object.entries(files)) {
    const line = text.split('\n').findIndex(written => written.includes('HERE'))
    if (line !== -1) return `${name}:${line + 1}`
  }
  return undefined
}

const shown = ({ file, line }: ReportedProblem, folder: string): string | undefined =>
  file === undefined ? undefined : `${file.replace(`${folder}/`, '')}${line === undefined ? '' : `:${line}`}`

async function withEnvironment<T>(env: Readonly<Record<string, string>>, run: () => Promise<T>): Promise<T> {
  const before = Object.fromEntries(Object.keys(env).map(name => [name, process.env[name]]))
  Object.assign(process.env, env)
  try {
    return await run()
  } finally {
    for (const [name, value] of Object.entries(before)) {
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
    }
  }
}

async function answered(row: Row): Promise<void> {
  const folder = await makeFolder(row.files)
  const report = await withEnvironment(row.env ?? {}, () => reportOn({}, { env: process.env, cwd: folder }))
  const told = row.severity === 'warning' ? report.warnings : report.problems
  const all = JSON.stringify(told, undefined, 2)
  const place = placeOf(row)
  const fits = (one: ReportedProblem) =>
    shown(one, folder) === place && row.names.every(name => one.message.includes(name.replaceAll('<folder>', folder)))
  expect(told.some(fits), `${place}: ${row.names.join(' | ')}\nwas answered: ${all}`).to.equal(true)
  if (row.severity === 'warning') expect(report.problems, 'errors').to.deep.equal([])
  else expect(report.problems, all).to.have.lengthOf(row.errors ?? 1)
}

describe('Config error catalogue', () => {
  after(removeFolders)

  for (const [area, rows] of Object.entries(TABLE)) {
    describe(area, () => {
      for (const row of rows) it(row.mistake, () => answered(row))
    })
  }

  const all = Object.values(TABLE).flat()

  it('has at least 120 entries with unique names', () => {
    expect(all.length).to.be.at.least(120)
    expect(new Set(all.map(({ mistake }) => mistake)).size).to.equal(all.length)
  })

  it('gives each error a line, or a reason for its absence', () => {
    const unplaced = all.filter(row => !/:\d+$/.test(placeOf(row) ?? '') && row.noLine === undefined)
    expect(unplaced.map(({ mistake }) => mistake)).to.deep.equal([])
  })

  it('reports no problems for a valid config', async () => {
    const fine = tools(
      `${GOOD_TOOL}\nexport const list = [defineResource({ name: 'r', uri: 'a://b', handler: () => 'x' })]`,
    )
    const folder = await makeFolder({ ...yaml(), ...fine })
    const { ok, problems, warnings } = await withEnvironment({ MCP_HOST_SECRETS: 's'.repeat(32) }, () =>
      reportOn({}, { env: process.env, cwd: folder }),
    )
    expect({ ok, problems, warnings }).to.deep.equal({ ok: true, problems: [], warnings: [] })
  })

  it('reports one problem of each kind in one run', async () => {
    const folder = await makeFolder({
      'mcp.config.yaml': [
        'server: { name: a, version: "1" }',
        'toolsets: { a: ./a.mjs, b: ./gone.mjs, c: ./c.mjs }',
        'routes:',
        '  /: { toolsets: [aa] }',
        '  /x: { toolsets: a, authorize: true }',
        '  /y/:id: { toolsets: a }',
        '  /y/:other: { toolsets: a }',
        'plugins:',
        '  transport-streamable: {}',
        "  cors: { policies: { open: { origins: ['*'], credentials: true } } }",
      ].join('\n'),
      'a.mjs': 'export const nothing = 1',
      'c.mjs': "\nthrow new Error('no key')",
    })
    const { problems, config } = await reportOn({}, { env: process.env, cwd: folder })
    expect(config).to.equal(join(folder, 'mcp.config.yaml'))
    expect(problems.map(one => shown(one, folder))).to.have.members([
      ...['mcp.config.yaml:2', 'mcp.config.yaml:4', 'mcp.config.yaml:5', 'mcp.config.yaml:7', 'mcp.config.yaml:10'],
      ...['a.mjs', 'c.mjs:2'],
    ])
  })
})

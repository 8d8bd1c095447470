// A host with an audit in a folder of its own, and its audit as `mcp-host audit verify` sees it.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { defineTool, ToolError } from '../../../core/index.ts'
import { createSecrets } from '../../../core/kernel/secrets.ts'
import { keySigner } from '../../../plugins/audit/chain.ts'
import { type Expectations, verifyTrail } from '../../../plugins/audit/verify-trail.ts'
import { makeFolder } from '../../config/folder.ts'
import { modern } from '../../support/rpc.ts'
import { startHost, type TestConfig } from '../../support/start-host.ts'

export const SECRET = 'a secret for tests, long enough to be one'
export const signersOf = (...secrets: string[]) => createSecrets(secrets).keys('audit').map(keySigner)

const toolset = [
  defineTool({ name: 'say', input: { type: 'object' }, handler: () => 'said' }),
  defineTool({
    name: 'fail',
    handler() {
      throw new ToolError('no luck')
    },
  }),
]

export interface AuditedSettings {
  readonly folder?: string
  readonly options?: object
  readonly config?: Partial<TestConfig>
}

export async function startAudited({ folder: given, options = {}, config = {} }: AuditedSettings = {}) {
  const folder = given ?? (await makeFolder({}))
  const plugins = { 'transport-streamable': {}, audit: { file: 'audit.jsonl', ...options }, ...config.plugins }
  const started = await startHost(
    { toolsets: { all: toolset }, routes: { '/mcp': { toolsets: 'all' } }, ...config, plugins },
    folder,
  )
  const call = (name: string, args: object = {}, headers = {}, path = '/mcp') =>
    modern(`${started.url}${path}`, 'tools/call', { name, arguments: args }, { headers })
  const close = () => started.host.close({ grace: 0 })
  return { ...started, folder, file: join(folder, 'audit.jsonl'), call, close }
}

export type Line = Record<string, unknown>

export const linesIn = async (file: string): Promise<Line[]> =>
  (await readFile(file, 'utf8'))
    .split('\n')
    .filter(Boolean)
    .map(text => JSON.parse(text))

/** The files of an audit in a folder. */
export const auditsIn = async (folder: string): Promise<string[]> =>
  (await readdir(folder))
    .filter(name => name.endsWith('.jsonl'))
    .sort()
    .map(name => join(folder, name))

export async function verifyFolder(folder: string, expected: Partial<Expectations> = {}) {
  const settings = { signers: signersOf(SECRET), allowPlain: false, heads: [], ...expected }
  return verifyTrail(await auditsIn(folder), settings)
}

/** In a word or the first place that is broken, for one chain. */
export async function verdictOn(folder: string, expected: Partial<Expectations> = {}): Promise<string> {
  const { chains, strange, missingHeads } = await verifyFolder(folder, expected)
  const broken = strange[0] ?? chains.find(({ broken }) => broken)?.broken
  if (broken) return `${broken.line ?? 'file'}: ${broken.what}`
  return missingHeads.length > 0 ? 'a head is missing' : `whole, ${chains.length}`
}

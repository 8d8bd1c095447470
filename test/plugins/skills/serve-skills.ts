// A host that serves a folder of skills which a test wrote, and what its clients are told.
import { createHash } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Config } from '../../../core/index.ts'
import { makeFolder } from '../../config/folder.ts'
import { modern, type RpcAnswer, type RpcMessage, type RpcOptions } from '../../support/rpc.ts'
import { startHost } from '../../support/start-host.ts'

export type Files = Readonly<Record<string, string | Uint8Array>>

/** A SKILL.md. */
export const skill = (name: string, more = '', body = `# ${name}\n`): string =>
  `---\nname: ${name}\ndescription: What ${name} is for.\n${more}---\n${body}`

/** Writes files into a new folder; those of skills are in its `skills`. */
export async function writeSkills(files: Files): Promise<string> {
  const folder = await makeFolder({})
  await mkdir(join(folder, 'skills'))
  const paths = Object.entries(files).map(([name, content]) => [join(folder, 'skills', name), content] as const)
  for (const above of new Set(paths.map(([path]) => dirname(path)))) await mkdir(above, { recursive: true })
  await Promise.all(paths.map(([path, content]) => writeFile(path, content)))
  return folder
}

/** One route that serves the folder's skills, unless the config says otherwise. */
export const skillsConfig = (more: Partial<Config> = {}) => ({
  toolsets: { none: [] },
  routes: { '/': { toolsets: 'none' } },
  ...more,
  plugins: { 'transport-streamable': {}, skills: { folder: './skills' }, ...more.plugins },
})

export interface SkillsHost {
  readonly url: string
  readonly folder: string
  readonly log: Awaited<ReturnType<typeof startHost>>['log']
  ask(method: string, params?: object, options?: RpcOptions): Promise<RpcAnswer>
  /** The result of a request that is answered. */
  result(method: string, params?: object, options?: RpcOptions): Promise<RpcMessage>
}

export async function serveFolder(folder: string, more: Partial<Config> = {}): Promise<SkillsHost> {
  const { url, log } = await startHost(skillsConfig(more), folder)
  const ask: SkillsHost['ask'] = (method, params = {}, options = {}) => modern(url, method, { ...params }, options)
  return {
    url,
    folder,
    log,
    ask,
    async result(method, params, options) {
      const { message } = await ask(method, params, options)
      if (message.error) throw new Error(`${method}: ${JSON.stringify(message.error)}`)
      return message.result
    },
  }
}

/** Serves these files. */
export const serveSkills = async (files: Files, more: Partial<Config> = {}): Promise<SkillsHost> =>
  serveFolder(await writeSkills(files), more)

/** The bytes that a `resources/read` brought. */
export function bytesIn({ contents: [content] }: RpcMessage): Buffer {
  return content.blob === undefined ? Buffer.from(content.text) : Buffer.from(content.blob, 'base64')
}

export const digestOf = (bytes: Uint8Array | string): string =>
  `sha256:${createHash('sha256').update(bytes).digest('hex')}`

/** All pages of a list. */
export async function allPages(
  { result }: Pick<SkillsHost, 'result'>,
  method: string,
  list: string,
  params: object = {},
): Promise<RpcMessage[][]> {
  const pages: RpcMessage[][] = []
  let cursor: string | undefined
  do {
    const page = await result(method, { ...params, ...(cursor !== undefined && { cursor }) })
    pages.push(page[list])
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return pages
}

export const urisOf = (entries: readonly RpcMessage[]): string[] => entries.map(({ uri }) => uri)

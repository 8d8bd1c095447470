// A host with tools under tool-policy, and one caller after another.
import { type Config, defineTool, type User } from '../../../core/index.ts'
import type { ToolPolicyOptions } from '../../../plugins/tool-policy/index.ts'
import { modern } from '../../support/rpc.ts'
import { startHost } from '../../support/start-host.ts'
import { as, bearerJson } from './bearer-json.ts'

export const tool = (name: string, access?: string) =>
  defineTool({ name, ...(access !== undefined && { access }), handler: () => 'done' })
export const purge = tool('purge')

/** Two tools, `purge` and `other`, on one route, unless the config says otherwise. */
export async function serve(options: ToolPolicyOptions, more: Partial<Config> = {}) {
  const { url, log } = await startHost({
    toolsets: { all: [purge, tool('other')] },
    routes: { '/': { toolsets: 'all' } },
    ...more,
    plugins: { 'transport-streamable': {}, bearer: bearerJson(), 'tool-policy': options, ...more.plugins },
  })
  const call = async (
    user: Partial<User> | undefined,
    name = 'purge',
    path = '',
    more: Record<string, string> = {},
  ) => {
    const sent = { headers: { ...as(user), ...more } }
    const { status, headers, message } = await modern(`${url}${path}`, 'tools/call', { name }, sent)
    return { status, challenge: headers.get('www-authenticate'), message }
  }
  const namesFor = async (user: Partial<User> | undefined, path = '') =>
    (await modern(`${url}${path}`, 'tools/list', {}, { headers: as(user) })).message.result.tools.map(
      ({ name }: { name: string }) => name,
    )
  return { url, log, call, namesFor }
}

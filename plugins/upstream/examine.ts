// `mcp-host doctor --config`: connects to each server and reads its lists.
import { join } from 'node:path'
import type { InternalExamination } from '../../core/internal.ts'
import type { PluginFinding } from '../../core/plugin.ts'
import { systemClock } from '../../core/transport.ts'
import { connect, operatorText } from '../../remote/index.ts'
import { isPerCaller } from '../families/credentials/index.ts'
import { visibleLine, visibleText } from '../families/texts/index.ts'
import { type AcceptedServer, describeDifferences, readAccepted } from './accepted.ts'
import { listCapabilities } from './calls.ts'
import { isLoginNeeded } from './failures.ts'
import { readLists } from './lists.ts'
import { isIncluded, isServed } from './names.ts'
import type { UpstreamOptions } from './options.ts'
import { resolveServer, type ServerSettings } from './settings.ts'
import { createTargets, type TokenHost } from './targets.ts'

const CLIENT = { name: 'mcp-host', version: '1.0.0' }

/** Connects to a server and reads its lists. `host`: for servers with `auth`. */
export async function readServer(settings: ServerSettings, host?: TokenHost) {
  const targets = createTargets(settings, host)
  const { connectTimeout, callTimeout: timeout, revision, maxTools } = settings
  const fixed = revision === undefined ? {} : { revision }
  try {
    const capabilities = listCapabilities(settings)
    const connection = await connect(await targets.target(), { client: CLIENT, capabilities, connectTimeout, ...fixed })
    try {
      const limits = { maxTools, timeout, signal: new AbortController().signal }
      return { connection, snapshot: await readLists(connection, limits) }
    } finally {
      await connection.close()
    }
  } finally {
    await targets.close()
  }
}

const FIX_LOGIN = 'correct `headers` or `auth`'

async function examineServer(
  name: string,
  options: UpstreamOptions,
  about: InternalExamination,
  accepted: AcceptedServer | undefined,
): Promise<PluginFinding> {
  const check = `server "${name}"`
  const settings = resolveServer(name, options, about)
  const { auth } = settings.http ?? {}
  try {
    const { connection, snapshot } = await readServer(settings, { ...about, clock: systemClock })
    const { server, revision } = connection
    const tools = snapshot.tools.filter(one => isIncluded(settings, String(one['name'])))
    const resources = [...snapshot.resources, ...snapshot.resourceTemplates]
      .map(one => String(one['uri'] ?? one['uriTemplate']))
      .filter(uri => isServed(settings.resources, uri))
    const prompts = snapshot.prompts.filter(one => isServed(settings.prompts, String(one['name'])))
    const counts = `${tools.length} tools, ${resources.length} resources, ${prompts.length} prompts`
    const facts = `${visibleLine(`${server.name ?? 'unnamed'} ${server.version ?? ''}`).trim()}, protocol version ${revision}, ${counts}`
    const differences = accepted === undefined ? '' : describeDifferences(snapshot, accepted, settings)
    if (differences === '') return { check, level: 'ok', text: facts }
    const text = `${facts}; differences from the lock file: ${differences}`
    return { check, level: 'note', text, fix: `review them with \`mcp-host accept ${name}\`` }
  } catch (error) {
    if (auth && isPerCaller(auth) && isLoginNeeded(error)) {
      const text = `reachable, lists tools only with a token: run \`mcp-host accept ${name} --token TOKEN\``
      return { check, level: 'note', text }
    }
    const fix = isLoginNeeded(error)
      ? FIX_LOGIN
      : `correct \`${settings.http ? 'url' : 'command'}\`, or start the server`
    return { check, level: 'wrong', text: visibleText(operatorText(error)), fix }
  }
}

export async function examineServers(
  options: UpstreamOptions,
  about: InternalExamination,
): Promise<readonly PluginFinding[]> {
  const accepted = readAccepted(join(about.directory, 'mcp.lock.json'))
  return Promise.all(Object.keys(options.servers).map(name => examineServer(name, options, about, accepted.get(name))))
}

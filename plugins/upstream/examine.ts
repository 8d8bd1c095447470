// `mcp-host doctor --config`: connects to each server and reads its lists.
import { join } from 'node:path'
import type { InternalExamination } from '../../core/internal.ts'
import { type PluginFinding, StartError } from '../../core/plugin.ts'
import { systemClock } from '../../core/transport.ts'
import { connect, operatorText } from '../../remote/index.ts'
import { isPerCaller } from '../families/credentials/index.ts'
import { countsText, visibleLine, visibleText } from '../families/texts/index.ts'
import { listCapabilities } from './calls.ts'
import { createDefiner } from './definitions.ts'
import { isLoginNeeded } from './failures.ts'
import { readLists, type Snapshot } from './lists.ts'
import { describeDifferences, type LockEntry, readLockEntries, reviewLists } from './lock-entry.ts'
import { isIncluded, isServed } from './names.ts'
import type { UpstreamOptions } from './options.ts'
import { toolsetsFor } from './set-up.ts'
import { resolveServer, type ServerSettings } from './settings.ts'
import { createTargets, type TokenHost } from './targets.ts'

const CLIENT = { name: 'mcp-host', version: '1.0.0' }
/** Time for all lists of a server, milliseconds. */
const LIST_TIME = 60_000

/** Connects to a server and reads its lists. `host`: for servers with `auth`. */
export async function readServer(settings: ServerSettings, host?: TokenHost) {
  const targets = createTargets(settings, host)
  const { connectTimeout, callTimeout: timeout, revision, maxTools } = settings
  const fixed = revision === undefined ? {} : { revision }
  try {
    const capabilities = listCapabilities(settings)
    const connection = await connect(await targets.target(), { client: CLIENT, capabilities, connectTimeout, ...fixed })
    try {
      const signal = AbortSignal.timeout(LIST_TIME)
      try {
        return { connection, snapshot: await readLists(connection, { maxTools, timeout, signal }) }
      } catch (error) {
        throw signal.aborted ? new Error(`its lists were not complete after ${LIST_TIME / 1_000} s`) : error
      }
    } finally {
      await connection.close()
    }
  } finally {
    await targets.close()
  }
}

interface Examined {
  readonly finding: PluginFinding
  /** Undefined if the lists cannot be read. */
  readonly snapshot?: Snapshot
}

const FIX_LOGIN = 'correct `headers` or `auth`'

async function examineServer(
  settings: ServerSettings,
  about: InternalExamination,
  accepted: LockEntry | undefined,
): Promise<Examined> {
  const { name } = settings
  const check = `server "${name}"`
  const { auth } = settings.http ?? {}
  try {
    const { connection, snapshot } = await readServer(settings, { ...about, clock: systemClock })
    const { server, revision } = connection
    const tools = snapshot.tools.filter(one => isIncluded(settings, String(one['name'])))
    const resources = [...snapshot.resources, ...snapshot.resourceTemplates]
      .map(one => String(one['uri'] ?? one['uriTemplate']))
      .filter(uri => isServed(settings.resources, uri))
    const prompts = snapshot.prompts.filter(one => isServed(settings.prompts, String(one['name'])))
    const counts = countsText({ tools: tools.length, resources: resources.length, prompts: prompts.length })
    const facts = `${visibleLine(`${server.name ?? 'unnamed'} ${server.version ?? ''}`).trim()}, protocol version ${revision}, ${counts}`
    const differences = accepted === undefined ? '' : describeDifferences(snapshot, accepted, settings)
    if (differences === '') return { finding: { check, level: 'ok', text: facts }, snapshot }
    const text = `${facts}; differences from the lock file: ${differences}`
    const fix = `review them with \`mcp-host accept ${name} --dry-run\``
    return { finding: { check, level: 'note', text, fix }, snapshot }
  } catch (error) {
    if (auth && isPerCaller(auth) && isLoginNeeded(error)) {
      const text = `reachable, lists tools only with a token: run \`mcp-host accept ${name} --token TOKEN\``
      return { finding: { check, level: 'note', text } }
    }
    const fix = isLoginNeeded(error)
      ? FIX_LOGIN
      : `correct \`${settings.http ? 'url' : 'command'}\`, or start the server`
    return { finding: { check, level: 'wrong', text: visibleText(operatorText(error)), fix } }
  }
}

const refuse = () => Promise.reject(new Error('a definition of an examination was called'))

/** Returns the error that stops startup: two items of a route have the same name. */
function findClash(
  options: UpstreamOptions,
  settings: ServerSettings,
  snapshot: Snapshot,
  accepted: LockEntry | undefined,
): StartError | undefined {
  const { served, changedTools } = reviewLists(snapshot, accepted, settings)
  const { definitions } = createDefiner(settings, { call: refuse, complete: refuse })(served, false, changedTools)
  try {
    toolsetsFor.get(options)?.get(settings.name)?.replace(definitions)
  } catch (error) {
    if (error instanceof StartError) return error
    throw error
  }
  return undefined
}

export async function examineServers(
  options: UpstreamOptions,
  about: InternalExamination,
): Promise<readonly PluginFinding[]> {
  const accepted = readLockEntries(join(about.directory, 'mcp.lock.json'))
  const all = Object.keys(options.servers).map(name => resolveServer(name, options, about))
  const examined = await Promise.all(all.map(one => examineServer(one, about, accepted.get(one.name))))
  return examined.flatMap(({ finding, snapshot }, index) => {
    const settings = all[index] as ServerSettings
    const clash = snapshot && findClash(options, settings, snapshot, accepted.get(settings.name))
    const { check } = finding
    return clash ? [finding, { check, level: 'wrong' as const, text: `${clash.code}: ${clash.message}` }] : [finding]
  })
}

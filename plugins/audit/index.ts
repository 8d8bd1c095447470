// An audit: one line for each request that did or read something, and for each that was refused. The lines hold on to each
// other, so that none can be changed, removed or added unseen; `mcp-host audit verify` looks.
import { access, constants } from 'node:fs/promises'
import { dirname, isAbsolute, join } from 'node:path'
import { blame } from '../../core/auth.ts'
import {
  type BuiltInOptions,
  type CallRecord,
  DURATION_PATTERN,
  definePlugin,
  type FilledOptions,
  HostError,
  type PluginHost,
  parseDuration,
  parseSize,
  type Services,
  SIZE_PATTERN,
  StartError,
} from '../../core/index.ts'
import { keySigner, plainSigner } from './chain.ts'
import { entryOf } from './entry.ts'
import { folderProblem, OpenTrail } from './open-trail.ts'

export type AuditOptions = BuiltInOptions['audit']
type Filled = FilledOptions['audit']

/** What only looks at what there is. */
const LOOKING = [
  'ping',
  'server/discover',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'logging/setLevel',
  'subscriptions/listen',
]

/** Each client has a process of its own, and so has a host that serves the same config: there are 4 files for each of these. */
const STDIO_PROCESSES = 8

const TRAILS = Symbol('the audits that are open')

/** Instances of one file, such as those of several routes, have one writer. */
function trailOf(host: PluginHost, options: Filled): OpenTrail {
  const { file, sync, headEvery, rotate } = options
  const path = isAbsolute(file) ? file : join(host.directory, file)
  const trails = host.share(TRAILS, () => new Map<string, { readonly trail: OpenTrail; readonly said: string }>())
  const said = JSON.stringify({ sync, headEvery, rotate })
  const known = trails.get(path)
  if (known && known.said !== said) {
    throw new StartError(
      `${file} is written by several routes, of which each says otherwise how: give them the same ` +
        '`sync`, `rotate` and `headEvery`, or each a `file` of its own',
      { at: host.at },
    )
  }
  if (known) return known.trail
  const trail = new OpenTrail(
    {
      path,
      signers: host.ownKeys ? [plainSigner] : host.keys('audit').map(keySigner),
      node: host.node,
      log: host.log,
      sync,
      headEvery: parseDuration(headEvery),
      rotateAt: parseSize(rotate.size),
      rotateAfter: rotate.age === undefined ? Infinity : parseDuration(rotate.age),
      keep: rotate.keep ?? Infinity,
    },
    host.purpose === 'stdio' ? STDIO_PROCESSES : host.processes,
  )
  trails.set(path, { trail, said })
  if (host.purpose !== 'test') host.checking(() => checkFolder(host, path))
  // Without a start it keeps nothing.
  const isKept = host.purpose === 'serve' || host.purpose === 'stdio'
  if (isKept) host.starting(() => trail.start())
  host.closing(() => trail.close())
  return trail
}

/** The lock, and files that are full, stand in the same folder. */
async function checkFolder({ at, report }: PluginHost, path: string) {
  try {
    // The dot fails for what is no folder.
    await access(`${dirname(path)}/.`, constants.W_OK)
  } catch (error) {
    report(new StartError(folderProblem(error, path), { at: [...at, 'file'], cause: error }))
  }
}

const NO_KEY =
  'the audit has no key, for there are no `secrets`: who can write its file can make a chain that verifies; put a secret into ' +
  'the config, or into MCP_HOST_SECRETS'

/** What was turned away because of this: counted, not written. */
const turnedAway = new WeakSet<object>()

/** Turns away what would leave no line, while none can be written. */
function refuseUnwritten(host: PluginHost, trail: OpenTrail, isLeftOut: (method: string) => boolean) {
  host.around((call, next) => {
    const { failure } = trail
    if (failure === undefined || isLeftOut(call.method)) return next()
    trail.countRefused()
    const detail = 'what is called cannot be put on record at the moment; try again'
    const reason = `the audit: ${failure}`
    const error = new HostError('unavailable', { detail, headers: { 'Retry-After': '2' }, reason })
    turnedAway.add(error)
    blame(error, host.name)
    throw error
  })
  const [, at = ''] = host.at
  const name = host.at[0] === 'plugins' ? host.name : `${host.name} ${at}`
  host.ready(name, () => (trail.failure === undefined ? true : `the audit cannot be written: ${trail.failure}`))
}

/** Whether a record is written: what was refused or failed, what did or read something, and sessions that their client ended. */
const isWritten = ({ call, outcome, http, session }: CallRecord, leftOut: ReadonlySet<string>): boolean => {
  if (!call) return outcome === 'refused' || (http?.verb === 'DELETE' && outcome === 'ok' && session !== undefined)
  return !leftOut.has(call.method) || (outcome !== 'ok' && outcome !== 'cancelled')
}

function setup(host: PluginHost, options: Filled) {
  const { onFailure, leaveOut, subjects } = options
  const leftOut: ReadonlySet<string> = new Set(leaveOut)
  const trail = trailOf(host, options)
  if (host.ownKeys) host.report(new StartError(NO_KEY, { at: host.at }), 'warning')
  if (onFailure === 'refuse') refuseUnwritten(host, trail, method => leftOut.has(method))
  let services: Services | undefined
  host.serving(given => {
    services = given
  })
  const routes = new Map(host.routes.map(route => [route.path, route]))
  const settings = {
    clear: subjects === 'clear',
    arguments: new Map(Object.entries(options.arguments)),
    isKnown(path: string | undefined, kind: string, name: string) {
      const route = routes.get(path ?? '')
      const items = route ? services?.itemsOf(route) : undefined
      return items?.some(item => item.kind === kind && item.key === name) ?? false
    },
  }
  host.observe(record => {
    if (record.error && turnedAway.has(record.error)) return
    if (isWritten(record, leftOut)) trail.push(entryOf(record, settings))
  })
}

export const audit = definePlugin<AuditOptions, Filled>({
  options: {
    type: 'object',
    description: 'A line for each request that did something or was refused, in a chain that shows what was changed.',
    additionalProperties: false,
    properties: {
      file: {
        type: 'string',
        default: 'audit.jsonl',
        description: 'Where the lines go, relative to the config. Of several processes each has one: `audit.1.jsonl`.',
      },
      onFailure: {
        type: 'string',
        enum: ['warn', 'refuse'],
        default: 'warn',
        description: 'While lines cannot be written: serve on and count those that are lost, or refuse calls.',
      },
      arguments: {
        type: 'object',
        default: {},
        description: 'By tool, the names of top-level arguments that are written. All others never are.',
        additionalProperties: { type: 'array', maxItems: 32, items: { type: 'string' } },
      },
      leaveOut: {
        type: 'array',
        items: { type: 'string' },
        default: LOOKING,
        description: 'Methods whose calls leave no line where they went well. Refusals and failures always do.',
      },
      subjects: {
        type: 'string',
        enum: ['disguised', 'clear'],
        default: 'disguised',
        description: '`clear`: subject and issuer as they are, beside what stands for the user.',
      },
      sync: {
        type: 'string',
        enum: ['always', 'second', 'never'],
        default: 'second',
        description:
          'When lines are brought to the disk itself: with each batch, once a second, or when the system likes.',
      },
      headEvery: {
        type: 'string',
        pattern: DURATION_PATTERN,
        default: '10m',
        description: "How often the host's log tells the newest hash, where there is a new one.",
      },
      rotate: {
        type: 'object',
        default: {},
        description: 'When a new file is begun.',
        additionalProperties: false,
        properties: {
          size: {
            type: ['string', 'integer'],
            pattern: SIZE_PATTERN,
            minimum: 1,
            default: '100mb',
            description: 'Of a full file.',
          },
          age: { type: 'string', pattern: DURATION_PATTERN, description: 'Of a full file. Default: any.' },
          keep: {
            type: 'integer',
            minimum: 1,
            description: 'Full files that are kept; older ones are removed. Default: all.',
          },
        },
      },
    },
  },
  setup,
})

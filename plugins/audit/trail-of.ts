// The audit trail of a plugin instance: one per file, with its metrics.
import { resolve } from 'node:path'
import { type FilledOptions, type PluginHost, parseDuration, parseSize, StartError } from '../../core/index.ts'
import { claimFile } from '../families/own-file/index.ts'
import { type AnonymousRefusals, createAnonymousRefusals } from './anonymous-refusals.ts'
import { keySigner, plainSigner } from './chain.ts'
import { OpenTrail } from './open-trail.ts'
import type { TrailSettings } from './trail.ts'

type Filled = FilledOptions['audit']

const LINES = { name: 'mcp_host_audit_lines_total', help: 'Lines of the audit that were written.' }
const LOST = {
  name: 'mcp_host_audit_lost_lines_total',
  help: 'Lines of the audit that were not written, and will not be.',
}
const FAILING = { name: 'mcp_host_audit_failing', help: '1 while the audit cannot be written, else 0.' }

/** Every client starts a process with the same config. */
const STDIO_PROCESSES = 8

const TRAILS = Symbol('the audits that are open')

interface Opened {
  readonly trail: OpenTrail
  readonly refusals: AnonymousRefusals
}

function settingsOf(host: PluginHost, path: string, { sync, headEvery, rotate }: Filled): TrailSettings {
  const tell = { written: host.figures.counter(LINES), lost: host.figures.counter(LOST) }
  return {
    path,
    signers: host.ownKeys ? [plainSigner] : host.keys('audit').map(keySigner),
    node: host.node,
    log: host.log,
    sync,
    headEvery: parseDuration(headEvery),
    rotateAt: parseSize(rotate.size),
    rotateAfter: rotate.age === undefined ? Infinity : parseDuration(rotate.age),
    keep: rotate.keep ?? Infinity,
    count: (what, lines) => tell[what](lines),
  }
}

function open(host: PluginHost, path: string, options: Filled): Opened {
  const settings = settingsOf(host, path, options)
  const trail = new OpenTrail(settings, host.purpose === 'stdio' ? STDIO_PROCESSES : host.processes)
  const refusals = createAnonymousRefusals(fields => trail.push(fields))
  host.figures.gauge(FAILING, () => (trail.failure === undefined ? 0 : 1))
  // Hosts without startup write nothing.
  const isKept = host.purpose === 'serve' || host.purpose === 'stdio'
  if (isKept) host.starting(() => trail.start())
  host.closing(() => {
    refusals.close()
    return trail.close()
  })
  return { trail, refusals }
}

export function trailOf(host: PluginHost, options: Filled): Opened {
  const { file, sync, headEvery, rotate } = options
  const path = resolve(host.directory, file)
  const trails = host.share(TRAILS, () => new Map<string, { readonly opened: Opened; readonly said: string }>())
  const said = JSON.stringify({ sync, headEvery, rotate })
  const known = trails.get(path)
  if (known && known.said !== said) {
    throw new StartError(
      `${file} is written by several routes, of which each says otherwise how: give them the same ` +
        '`sync`, `rotate` and `headEvery`, or each a `file` of its own',
      { at: host.at },
    )
  }
  if (known) return known.opened
  claimFile(host, path)
  const opened = open(host, path, options)
  trails.set(path, { opened, said })
  return opened
}

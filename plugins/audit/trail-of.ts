// The audit trail of a plugin instance: one per file, with its metrics.

import { dirname, resolve } from 'node:path'
import type { InternalHost } from '../../core/internal.ts'
import { errorText, parseDuration, parseSize, StartError } from '../../core/plugin.ts'
import { claimFile, createParentFolder } from '../families/plugin-files/index.ts'
import { keySigner, plainSigner } from './chain.ts'
import { createAnonymousRefusals } from './entry.ts'
import { type FileLock, lockFile, lockFirst } from './file-lock.ts'
import { workerFile } from './files.ts'
import type { FilledAuditOptions } from './options.ts'
import { Trail, type TrailSettings } from './trail.ts'

const LINES = { name: 'mcp_host_audit_lines_total', help: 'Lines of the audit that were written.' }
const LOST = {
  name: 'mcp_host_audit_lost_lines_total',
  help: 'Audit lines that were lost.',
}
const FAILING = { name: 'mcp_host_audit_failing', help: '1 while the audit cannot be written, else 0.' }

/** Maximum stdio processes, because each client starts one with the same config. */
const STDIO_PROCESSES = 8

const TRAILS = Symbol('the audits that are open')

function settingsOf(host: InternalHost, path: string, { sync, headEvery, rotate }: FilledAuditOptions): TrailSettings {
  const counters = { written: host.metrics.counter(LINES), lost: host.metrics.counter(LOST) }
  return {
    path,
    signers: host.ownKeys ? [plainSigner] : host.config.keys('audit').map(keySigner),
    node: host.config.node,
    log: host.log,
    sync,
    headEvery: parseDuration(headEvery),
    rotateAt: parseSize(rotate.size),
    rotateAfter: rotate.age === undefined ? Infinity : parseDuration(rotate.age),
    keep: rotate.keep ?? Infinity,
    count: (what, lines) => counters[what](lines),
  }
}

function open(host: InternalHost, path: string, options: FilledAuditOptions) {
  const settings = settingsOf(host, path, options)
  const processes = host.config.purpose === 'stdio' ? STDIO_PROCESSES : host.config.processes
  let trail: Trail | undefined
  let lock: FileLock | undefined

  async function claim() {
    // During a reload, new processes run next to the old ones.
    const files = Array.from({ length: 4 * processes }, (_, index) => workerFile(path, index + 1))
    const taken = processes === 1 ? { file: path, lock: await lockFile(path) } : await lockFirst(files)
    lock = taken.lock
    return { path: taken.file, hold: () => taken.lock.hold() }
  }

  async function start() {
    const started = new Trail({ ...settings, claim })
    try {
      createParentFolder(path)
      await started.start()
    } catch (cause) {
      await lock?.release()
      if (cause instanceof StartError) throw cause
      const why = `the audit cannot be written in ${dirname(path)}: ${errorText(cause)}`
      throw new StartError('MH2201', `${why}; allow this user to write there, or set another \`file\``, { cause })
    }
    trail = started
  }

  const refusals = createAnonymousRefusals(fields => trail?.push(fields))
  host.metrics.gauge(FAILING, () => (trail?.failure === undefined ? 0 : 1))
  if (host.config.purpose === 'serve' || host.config.purpose === 'stdio') host.onStart(start)
  host.onClose(async () => {
    refusals.close()
    await trail?.close()
    await lock?.release()
  })
  /** `current`: undefined before startup. */
  return { current: () => trail, refusals }
}

export function trailOf(host: InternalHost, options: FilledAuditOptions) {
  const { file, sync, headEvery, rotate } = options
  const path = resolve(host.config.directory, file)
  const trails = host.share(
    TRAILS,
    () => new Map<string, { readonly opened: ReturnType<typeof open>; readonly settings: string }>(),
  )
  const settings = JSON.stringify({ sync, headEvery, rotate })
  const known = trails.get(path)
  if (known && known.settings !== settings) {
    throw new StartError(
      'MH1041',
      `${file} is written by several routes with different options: give them the same ` +
        '`sync`, `rotate` and `headEvery`, or a separate `file` each',
      { at: host.config.at },
    )
  }
  if (known) return known.opened
  claimFile(host, path)
  const opened = open(host, path, options)
  trails.set(path, { opened, settings })
  return opened
}

// Fills the slots and manages the file; hosts in tests use a database in memory.
import { readFileSync, readlinkSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { hostname } from 'node:os'
import { resolve } from 'node:path'
import { attempt, type InternalHost } from '../../core/internal.ts'
import { parseSize, StartError } from '../../core/plugin.ts'
import { claimFile, processStartTime } from '../families/plugin-files/index.ts'
import { readStreamLimits, requireSecrets } from '../families/stores/index.ts'
import type { FilledStoreSqliteOptions } from './options.ts'
import type { Committed } from './thread/messages.ts'
import { createSqliteStore, Writer } from './writer.ts'

const PRIMARY = 'MCP_HOST_PRIMARY'

function createHostId(): string {
  const pid = process.env[PRIMARY] ?? String(process.pid)
  const space = attempt(() => readlinkSync('/proc/self/ns/pid'))?.replace(/\D/g, '')
  const boot = attempt(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8'))?.trim()
  return [`process ${pid} on ${hostname()}`, processStartTime(pid), space, boot].filter(Boolean).join(', ')
}

function registerMetrics(
  { metrics }: Pick<InternalHost, 'metrics'>,
  writer: () => Pick<Writer, 'trouble' | 'bytes' | 'evicted'>,
): { committed(committed: Committed): void } {
  const operations = metrics.counter({
    name: 'mcp_host_sqlite_operations_total',
    help: 'Operations on the file of store-sqlite. Divided by the number of commits: operations per commit.',
  })
  const seconds = metrics.histogram({
    name: 'mcp_host_sqlite_commit_duration_seconds',
    help: 'Duration of transactions of store-sqlite. Durable transactions include the disk sync.',
    labels: ['durable'],
  })
  metrics.gauge({ name: 'mcp_host_sqlite_up', help: '1 if the file of store-sqlite can be written, else 0.' }, () =>
    writer().trouble === undefined ? 1 : 0,
  )
  metrics.gauge({ name: 'mcp_host_sqlite_file_bytes', help: 'Size of the file of store-sqlite.' }, () => writer().bytes)
  metrics.gauge(
    {
      name: 'mcp_host_sqlite_evicted_streams',
      help: 'Streams that store-sqlite dropped since startup because its file was nearly full.',
    },
    () => writer().evicted,
  )
  return {
    committed(committed) {
      operations(committed.operations)
      seconds(committed.seconds, { durable: String(committed.durable) })
    },
  }
}

const FILES = Symbol('files of store-sqlite')
const MEMORY = ':memory:'
const MIN_SIZE = 1_048_576

export function setUp(host: InternalHost, options: FilledStoreSqliteOptions): void {
  requireNode(host)
  requireSecrets(host, 'sessions outlive this process, but the keys that sign their ids', 'this host')
  const file = openWriter(host, options)
  const maxSize = parseSize(options.maxSize)
  const limits = { streams: readStreamLimits(host, options), maxSize }
  host.provide('store', { ...createSqliteStore(file), limits })
}

function requireNode({ config: { at } }: InternalHost) {
  if (isBuiltin('node:sqlite')) return
  const why = `it needs the database of Node 22.13 or later, and this is Node ${process.versions.node}`
  const fix = 'use a newer Node.js, or remove this setting to keep sessions in memory'
  throw new StartError('MH2402', `${why}; ${fix}`, { at, exitCode: 2 })
}

function readMaxSize(host: InternalHost, options: FilledStoreSqliteOptions): number {
  const maxSize = parseSize(options.maxSize)
  if (maxSize >= MIN_SIZE) return maxSize
  const at = [...host.config.at, 'maxSize']
  throw new StartError('MH2403', 'less than 1mb: too small for one stream', { at })
}

/** Routes with the same file share its thread. */
function openWriter(host: InternalHost, options: FilledStoreSqliteOptions): Writer {
  const path = host.config.purpose === 'test' ? MEMORY : resolve(host.config.directory, options.file)
  const writers = host.share(FILES, () => new Map<string, { readonly writer: Writer; readonly optionsKey: string }>())
  const optionsKey = JSON.stringify({ ...options, file: path })
  const existing = writers.get(path)
  if (existing && existing.optionsKey !== optionsKey) {
    const why = `${options.file} is used by several routes with different options`
    throw new StartError('MH1041', `${why}: set the same options, or a separate \`file\` for each`, {
      at: host.config.at,
    })
  }
  if (existing) return existing.writer
  const writer = createWriter(host, path, options, writers.size === 0 ? 'sqlite' : `sqlite ${options.file}`)
  writers.set(path, { writer, optionsKey })
  return writer
}

function createWriter(host: InternalHost, path: string, options: FilledStoreSqliteOptions, condition: string): Writer {
  const maxSize = readMaxSize(host, options)
  const settings = { file: path, hostId: createHostId(), ifDamaged: options.ifDamaged, maxSize, log: host.log }
  const recorders = registerMetrics(host, () => writer)
  const writer: Writer = new Writer({ ...settings, ...recorders })
  if (path !== MEMORY) claimFile(host, path)
  host.onStart(() => writer.open())
  host.readiness(condition, () => writer.trouble ?? true)
  host.onClose(() => writer.close())
  return writer
}

// Writes one log line per request, without tokens, arguments or complete session ids.
import { randomUUID } from 'node:crypto'
import { resolve } from 'node:path'
import { isatty } from 'node:tty'
import { choice, closed, definePlugin, duration, type InternalHost, words } from '../../core/internal.ts'
import { type OptionsOf, parseDuration } from '../../core/plugin.ts'
import { requestIdIn } from '../../core/transport.ts'
import { claimFile, createParentFolder } from '../families/plugin-files/index.ts'
import { formatJson, formatText } from './format-line.ts'
import { LogWriter, openFile, wrapStream } from './log-writer.ts'

const STDOUT = 1
const STDERR = 2

const LOST_LINES = {
  name: 'mcp_host_access_log_lost_lines_total',
  help: 'Access log lines that were lost.',
}
const FAILING = {
  name: 'mcp_host_access_log_failing',
  help: '1 while the access log cannot be written, else 0.',
}

function assignRequestIds(host: InternalHost) {
  host.use((ctx, next) => {
    const { headers } = ctx.req
    const id = requestIdIn(headers) ?? randomUUID()
    // Sets the header, so that later readers use the same id.
    headers['x-request-id'] = id
    ctx.res.appendHeader('X-Request-Id', id)
    return next()
  })
}

function setup(host: InternalHost, { file, format, sample, slow }: FilledAccessLogOptions) {
  const path = file === undefined ? undefined : resolve(host.config.directory, file)
  // In stdio mode, stdout carries only the protocol.
  const stream = host.config.purpose === 'stdio' ? STDERR : STDOUT
  const isText = (format ?? (path === undefined && isatty(stream) ? 'text' : 'json')) === 'text'
  const formatLine = isText ? formatText : formatJson
  const threshold = parseDuration(slow)
  const countLost = host.metrics.counter(LOST_LINES)
  let writer: LogWriter | undefined
  host.metrics.gauge(FAILING, () => (writer?.failure === undefined ? 0 : 1))
  const writesLog = host.config.purpose === 'serve' || host.config.purpose === 'stdio'
  if (path !== undefined) claimFile(host, path, { appendsOnly: true })
  host.onStart(() => {
    if (!writesLog) return
    if (path !== undefined) createParentFolder(path)
    const destination =
      path === undefined ? wrapStream(stream === STDERR ? process.stderr : process.stdout) : openFile(path)
    writer = new LogWriter({ destination, file: path, log: host.log, countLost: count => countLost(count) })
  })
  assignRequestIds(host)
  host.onFinish(record => {
    const { outcome, milliseconds } = record
    const isSlow = milliseconds >= threshold && record.http?.verb !== 'GET'
    const succeeded = outcome === 'ok' || outcome === 'input_required'
    const isSampled = succeeded && !isSlow && sample < 1
    if (isSampled && Math.random() >= sample) return
    writer?.write(formatLine(record, { slow: isSlow, sample: isSampled ? sample : undefined }))
  })
  host.onClose(() => writer?.close())
}

const OPTIONS = closed(
  {
    file: words('Output file, relative to the config. Default: stdout, or stderr with `mcp-host stdio`.'),
    format: choice(['json', 'text'], 'Format. Default: text at a terminal, else JSON.'),
    sample: {
      type: 'number',
      minimum: 0,
      maximum: 1,
      default: 1,
      description: 'Share of fast, successful requests that is written: 0 to 1. All other requests are always written.',
    },
    slow: duration('Requests of at least this duration are always written, with `"slow": true`.', { default: '1s' }),
  },
  { description: 'Writes one line per request: caller, method, duration and outcome.' },
)

export interface AccessLogOptions extends OptionsOf<typeof OPTIONS> {}
export interface FilledAccessLogOptions extends OptionsOf<typeof OPTIONS, true> {}

export const accessLog = definePlugin<AccessLogOptions, FilledAccessLogOptions>({
  options: OPTIONS,
  setup,
})

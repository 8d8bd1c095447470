// Serves HTTPS with `http.tls` and replaces certificate and key on reload. Loaded only if configured.
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { createServer } from 'node:https'
import { resolve } from 'node:path'
import { createSecureContext } from 'node:tls'
import { isDeepStrictEqual } from 'node:util'
import type { ServiceParts } from './assembly.ts'
import type { FilledHttpSettings, FilledHttpTls } from './config/define-config.ts'
import type { HttpServerFactory } from './http/create-server.ts'
import { type Report, StartError, tryReport } from './http/errors.ts'
import { parseDuration } from './mcp/units.ts'

type Key = 'cert' | 'key'

export interface HostTls {
  readonly certificate: Certificate
  readonly createServer: HttpServerFactory
  /** Switches to the certificate of a newer config; false if unchanged. */
  update(next: HostTls): boolean
}

interface Certificate {
  readonly context: Pick<FilledHttpTls, 'cert' | 'key' | 'passphrase' | 'minVersion'>
  /** Milliseconds since the epoch. */
  readonly expires: number
}

type TlsParts = Pick<ServiceParts, 'log' | 'metrics' | 'report'> & { readonly directory: string }

const tlsError = (key: Key, text: string, cause?: unknown) =>
  new StartError('MH1303', text, { at: ['http', 'tls', key], cause })

function check<Result>(key: Key, text: string, part: () => Result): Result {
  try {
    return part()
  } catch (cause) {
    throw tlsError(key, `${text}: ${(cause as Error).message}`, cause)
  }
}

/** Reads PEM from the config or a file. Errors omit the value, which can be a key. */
async function readPem(key: Key, value: string, directory: string): Promise<string> {
  if (value.includes('-----BEGIN')) return value
  const file = resolve(directory, value)
  let text = ''
  try {
    // Reading a device or a pipe might never end.
    if ((await stat(file)).isFile()) text = await readFile(file, 'utf8')
  } catch (cause) {
    throw tlsError(key, `it is neither PEM nor a readable file (${(cause as NodeJS.ErrnoException).code})`, cause)
  }
  if (text.includes('-----BEGIN')) return text
  throw tlsError(key, 'its file contains no PEM (-----BEGIN); convert it with openssl')
}

async function readCertificate(tls: FilledHttpTls, directory: string, report: Report) {
  const read = (key: Key) =>
    readPem(key, tls[key], directory).catch((error: StartError) => {
      report(error)
      return undefined
    })
  const [cert, key] = await Promise.all([read('cert'), read('key')])
  if (cert === undefined || key === undefined) return undefined
  const { passphrase, minVersion } = tls
  const secret = { key, ...(passphrase !== undefined && { passphrase }) }
  return tryReport(report, (): Certificate => {
    const { validFrom, validTo } = check('cert', 'the certificate cannot be read', () => new X509Certificate(cert))
    check('key', 'the key cannot be read; an encrypted key needs http.tls.passphrase', () => createPrivateKey(secret))
    const context = { cert, minVersion, ...secret }
    check('key', 'the key and the certificate in http.tls.cert cannot be used', () => createSecureContext(context))
    const [starts, expires] = [Date.parse(validFrom), Date.parse(validTo)]
    const file = tls.cert.includes('-----BEGIN') ? 'the certificate' : tls.cert
    const warn = (text: string) => report(tlsError('cert', `${file} ${text}`), 'warning')
    const refused = (time: number) => `${new Date(time).toISOString()}, so clients refuse it`
    if (expires < Date.now()) warn(`expired on ${refused(expires)}; renew it, then reload or restart`)
    else if (starts > Date.now()) warn(`is valid from ${refused(starts)}; check the clock of this machine, or wait`)
    return { context, expires }
  })
}

export async function prepareTls(
  { tls, publicUrl }: FilledHttpSettings & { readonly tls: FilledHttpTls },
  { directory, log, metrics, report }: TlsParts,
): Promise<HostTls | undefined> {
  const certificate = await readCertificate(tls, directory, report)
  if (!certificate) return undefined
  if (publicUrl?.startsWith('http:')) {
    const text = 'it starts with http, but this host serves only HTTPS: use https, or remove http.tls behind a proxy'
    report(new StartError('MH1304', text, { at: ['http', 'publicUrl'] }), 'warning')
  }
  let current = certificate
  let server: ReturnType<typeof createServer> | undefined
  const failed = metrics.counter({
    name: 'mcp_host_tls_handshakes_failed_total',
    help: 'TLS handshakes that failed.',
    labels: ['reason'],
  })
  metrics.gauge(
    { name: 'mcp_host_tls_certificate_expiry_timestamp_seconds', help: 'When the served certificate expires.' },
    () => current.expires / 1_000,
  )
  return {
    certificate,
    createServer(options, serve) {
      const handshakeTimeout = Math.max(1, parseDuration(tls.handshakeTimeout))
      server = createServer({ ...options, ...certificate.context, handshakeTimeout }, serve)
      server.on('tlsClientError', ({ code: reason = 'unknown' }: NodeJS.ErrnoException, { remoteAddress: ip }) => {
        failed(1, { reason })
        log.debug({ reason, ip }, 'TLS handshake failed')
      })
      return server
    },
    update(next) {
      if (isDeepStrictEqual(next.certificate.context, current.context)) return false
      current = next.certificate
      server?.setSecureContext(current.context)
      return true
    },
  }
}

// `http.tls` of a host: what it names is checked with the rest of the config, served, and followed when it is renewed; the log
// and the figures say how that goes. For host.ts, which loads it where `http.tls` is given.
import { isIP } from 'node:net'
import type { FilledHttpSettings, FilledHttpTls } from './config/config-types.ts'
import { type Certificate, faultsOf, readCertificate } from './http/certificate.ts'
import type { HttpServerFactory } from './http/create-server.ts'
import { createRenewal, type RenewalNews } from './http/renewal.ts'
import { type HandshakeNews, type SecureServer, secureServer } from './http/secure-server.ts'
import { type Report, StartError } from './http/start-error.ts'
import type { Figures } from './kernel/figures.ts'
import type { Logger } from './kernel/log.ts'
import { parseDuration } from './mcp/units.ts'

/** What a host that is built has of it. */
export interface HostTls {
  readonly given: FilledHttpTls
  readonly certificate: Certificate
  readonly make: HttpServerFactory
  /** Follows the files from now on, until the server has closed. */
  watch(): void
  /** Serves what a newer version of the config names, and found; false where it is the same. */
  take(next: HostTls): boolean
}

interface TlsParts {
  readonly directory: string
  readonly log: Logger
  readonly figures: Figures
  readonly report: Report
}

const EVERYWHERE = new Set(['0.0.0.0', '::'])

/** Whom clients ask for; undefined where that is not known. */
function nameOf({ publicUrl, host }: FilledHttpSettings): string | undefined {
  const name = publicUrl === undefined ? host : new URL(publicUrl).hostname.replace(/^\[(.*)\]$/, '$1')
  return EVERYWHERE.has(name) ? undefined : name
}

function warn(http: FilledHttpSettings, certificate: Certificate, report: Report): void {
  const name = nameOf(http)
  for (const fault of faultsOf(certificate, name)) report(fault, 'warning')
  if (http.publicUrl?.startsWith('http:')) {
    const text =
      'it begins with http, but this host speaks HTTPS alone: write https, or leave http.tls out where a proxy speaks TLS'
    report(new StartError(text, { at: ['http', 'publicUrl'] }), 'warning')
  }
  const known = name === undefined || isIP(name) === 0
  if (!known && http.publicUrl === undefined && !certificate.names.includes(name)) {
    const text = `addresses that this host gives out name ${name}: set it to the one that the certificate is for`
    report(new StartError(text, { at: ['http', 'publicUrl'] }), 'warning')
  }
}

const describe = ({ subject, names, ends }: Certificate) => ({
  subject,
  names: names.slice(0, 20),
  ends: ends.toISOString(),
})
const textsOf = (mistakes: readonly StartError[]) => mistakes.map(({ message }) => message).join('; ')

const renewalNews = (log: Logger): RenewalNews => ({
  took(certificate, faults) {
    log.info(describe(certificate), 'took a new certificate')
    if (faults.length > 0) log.warn({ problem: textsOf(faults) }, 'clients will not like the new certificate')
  },
  tookClientCa: certificate =>
    log.info(describe(certificate), 'took new authorities of clients, with the certificate of before'),
  kept: (certificate, problems) =>
    log.warn(
      { ...describe(certificate), problem: textsOf(problems) },
      'the files of the certificate have changed and cannot be served: the one before is kept, until they are whole',
    ),
  ends: certificate => log.warn(describe(certificate), 'the certificate ends soon, or has, and no newer one is there'),
})

function handshakeNews(log: Logger, figures: Figures): HandshakeNews {
  const failed = figures.counter({
    name: 'mcp_host_tls_handshakes_failed_total',
    help: 'TLS handshakes that failed.',
    labels: ['reason'],
  })
  return {
    failed: reason => failed(1, { reason }),
    tell: line => log.debug(line, 'TLS handshakes failed'),
  }
}

/** Checks what the config names; undefined where it cannot be served, which is reported. */
export async function prepareTls(
  http: FilledHttpSettings & { readonly tls: FilledHttpTls },
  { directory, log, figures, report }: TlsParts,
): Promise<HostTls | undefined> {
  const { tls } = http
  const terms = { ...tls, passphrase: tls.passphrase }
  const certificate = await readCertificate(terms, directory, report)
  if (!certificate) return undefined
  warn(http, certificate, report)
  const handshakeTimeout = parseDuration(tls.handshakeTimeout)
  const make = secureServer({ certificate, handshakeTimeout, news: handshakeNews(log, figures) })
  let server: SecureServer | undefined
  const renewal = createRenewal(terms, certificate, {
    serve: context => server?.setSecureContext(context),
    directory,
    name: nameOf(http),
    news: renewalNews(log),
  })
  figures.gauge(
    { name: 'mcp_host_tls_certificate_expiry_timestamp_seconds', help: 'When the certificate that is served ends.' },
    () => renewal.current().ends.getTime() / 1_000,
  )
  return {
    given: tls,
    certificate,
    make(options, serve) {
      server = make(options, serve)
      return server
    },
    watch: () => void server?.once('close', renewal.watch()),
    take: next => renewal.take({ ...next.given, passphrase: next.given.passphrase }, next.certificate),
  }
}
